const text = new WeakMap<Secret, string>()

/** A value that must never be shown. Printing, joining or serialising it yields `[secret]`; only `reveal()` returns the value. */
export class Secret {
  constructor(value: string) {
    text.set(this, value)
  }

  /** Returns the plain value for the call that needs it. Never store or log the result. */
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

/** Shorter values are not masked, because placeholders such as `ollama` are not secrets and ordinary words would be masked. */
const SECRET_CHARS_MIN = 8

/** A text may be cut inside a secret. A text that ends with at least this number of a secret's first characters is masked from there. */
const BEGINNING_CHARS = 16

/** Returns the values to search for, longest first, so that a value which contains another is masked as a whole. */
export const secretValues = (secrets: Iterable<Secret>): string[] => longestFirst(Array.from(secrets, (secret) => secret.reveal()))

/** Returns the text with `mark` in place of these values. */
export const withoutSecrets = (text: string, values: Iterable<string>, mark?: string): string => secretMask(values, mark)(text)

/** Returns the function that puts `mark` in place of these values, for many texts. */
export function secretMask(values: Iterable<string>, mark = '[secret]'): (text: string) => string {
  const sorted = longestFirst(values)
  return (text) => sorted.reduce((clean, value) => masked(clean, value, mark), text)
}

/** Values are trimmed before they are sent, and platforms return the trimmed form. */
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
