const text = new WeakMap<Secret, string>()

/** A value that must never show. Printing, joining or serialising it yields `[secret]`; `reveal()` is the only way in. */
export class Secret {
  constructor(value: string) {
    text.set(this, value)
  }

  /** The plain value, for the one call that needs it. Never store or log what this returns. */
  reveal(): string {
    return text.get(this) ?? ''
  }

  toString(): string {
    return '[secret]'
  }

  toJSON(): string {
    return '[secret]'
  }

  [Symbol.for('nodejs.util.inspect.custom')](): string {
    return '[secret]'
  }
}

/** Shorter values stay: placeholders such as `ollama` are no secrets, and words of a text would look redacted. */
const SECRET_CHARS_MIN = 8

/** A text may have been cut within a secret: so many of its first characters are masked, with all that still follow. */
const BEGINNING_CHARS = 16

/** The values to look for in texts, longest first: one that holds another is found whole. */
export const secretValues = (secrets: Iterable<Secret>): string[] => longestFirst(Array.from(secrets, (secret) => secret.reveal()))

/** The text with `mark` in the place of these values. */
export function withoutSecrets(text: string, values: Iterable<string>, mark = '[secret]'): string {
  let clean = text
  for (const value of longestFirst(values)) clean = masked(clean, value, mark)
  return clean
}

/** Values are trimmed before they are sent, and so they come back. */
const longestFirst = (values: Iterable<string>): string[] =>
  Array.from(values, (value) => value.trim())
    .filter((value) => value.length >= SECRET_CHARS_MIN)
    .toSorted((a, b) => b.length - a.length)

function masked(text: string, value: string, mark: string): string {
  const beginning = value.slice(0, BEGINNING_CHARS)
  const parts: string[] = []
  let from = 0
  for (let at = text.indexOf(beginning); at >= 0; at = text.indexOf(beginning, from)) {
    let end = at + beginning.length
    while (end < text.length && end - at < value.length && text[end] === value[end - at]) end++
    parts.push(text.slice(from, at), mark)
    from = end
  }
  return parts.length === 0 ? text : [...parts, text.slice(from)].join('')
}
