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

/** The values to look for in texts, longest first: one that holds another is found whole. */
export const secretValues = (secrets: Iterable<Secret>): string[] => longestFirst(Array.from(secrets, (secret) => secret.reveal()))

/** The text with `mark` in the place of these values. */
export function withoutSecrets(text: string, values: Iterable<string>, mark = '[secret]'): string {
  let clean = text
  for (const value of longestFirst(values)) clean = clean.replaceAll(value, mark)
  return clean
}

const longestFirst = (values: Iterable<string>): string[] =>
  [...values].filter((value) => value.length >= SECRET_CHARS_MIN).toSorted((a, b) => b.length - a.length)
