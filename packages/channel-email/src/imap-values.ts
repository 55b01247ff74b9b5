/** The values in a response of an IMAP server (RFC 3501, section 4): atoms, strings, NIL and lists of them. */

/** Atoms and quoted strings are texts with one character for each byte; a literal keeps its bytes; NIL is null. */
export type ImapValue = string | Buffer | null | readonly ImapValue[]

/** A response is text, in which each literal is replaced by this mark. A server cannot send a NUL outside of a literal. */
export const LITERAL_MARK = '\0'

const DEPTH_MAX = 100
const SPACE = 0x20

/** Parses the values of a response; `literals` are the ones of its marks, in order. Throws an `Error` for a malformed response. */
export function parseValues(text: string, literals: readonly Buffer[]): readonly ImapValue[] {
  return new ValueParser(text, literals).list('', 0)
}

/** Returns a value as text, with one character for each byte; empty for NIL and lists. */
export const textOf = (value: ImapValue | undefined): string =>
  typeof value === 'string' ? value : Buffer.isBuffer(value) ? value.toString('latin1') : ''

export const bytesOf = (value: ImapValue | undefined): Buffer =>
  Buffer.isBuffer(value) ? value : Buffer.from(typeof value === 'string' ? value : '', 'latin1')

export const listOf = (value: ImapValue | undefined): readonly ImapValue[] => (Array.isArray(value) ? value : [])

class ValueParser {
  readonly #text: string
  readonly #literals: readonly Buffer[]
  #at = 0
  #literal = 0

  constructor(text: string, literals: readonly Buffer[]) {
    this.#text = text
    this.#literals = literals
  }

  /** Reads values up to `end`, or up to the end of the text if it is empty. */
  list(end: '' | ')', depth: number): ImapValue[] {
    if (depth > DEPTH_MAX) throw new Error('lists are nested too deep')
    const values: ImapValue[] = []
    for (;;) {
      while (this.#text.charCodeAt(this.#at) === SPACE) this.#at++
      const next = this.#text[this.#at]
      if (next === undefined || next === ')') {
        if (next !== (end === '' ? undefined : end)) throw new Error('parentheses do not match')
        this.#at++
        return values
      }
      values.push(this.#value(next, depth))
    }
  }

  #value(next: string, depth: number): ImapValue {
    if (next === '(') {
      this.#at++
      return this.list(')', depth + 1)
    }
    if (next === '"') return this.#quoted()
    if (next !== LITERAL_MARK) return this.#atom()
    this.#at++
    const literal = this.#literals[this.#literal++]
    if (!literal) throw new Error('a literal is missing')
    return literal
  }

  #quoted(): string {
    let value = ''
    for (let at = this.#at + 1; at < this.#text.length; at++) {
      const character = this.#text[at]
      if (character === '"') {
        this.#at = at + 1
        return value
      }
      value += character === '\\' ? (this.#text[++at] ?? '') : character
    }
    throw new Error('a quoted string does not end')
  }

  /** The name of a part of a message is an atom as well, with brackets that may contain a list: `BODY[HEADER.FIELDS (FROM)]`. */
  #atom(): string | null {
    const from = this.#at
    let brackets = 0
    for (; this.#at < this.#text.length; this.#at++) {
      const character = this.#text[this.#at]
      if (character === '[') brackets++
      else if (character === ']' && brackets > 0) brackets--
      else if (brackets === 0 && (character === ' ' || character === '(' || character === ')' || character === '"')) break
    }
    const atom = this.#text.slice(from, this.#at)
    return atom.toUpperCase() === 'NIL' ? null : atom
  }
}
