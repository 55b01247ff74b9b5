/** Takes the Base64 of one member out of a JSON object while it arrives, so that a file needs no memory of its size. */
import { ByteBuffer } from '@sluice/kit'
import { AppError } from '@sluice/sdk'
import { tooLarge } from './body.ts'

const QUOTE = 34
const COMMA = 44
const COLON = 58
const BACKSLASH = 92
/** A character of Base64 that a JSON writer has escaped: `\/`, and `+` or `=` as `\u002b`. */
const ESCAPED = /\\(?:\/|u00([0-9a-f]{2}))/gi
/** The begin of such an escape at the end of a piece. */
const BEGUN_ESCAPE = /\\(?:u[0-9a-f]{0,3})?$/i

/** Returns the bytes of a Base64 text with its padding. Throws `invalid_request` for any other text. */
export function base64Bytes(text: string, name: string): Buffer {
  const bytes = Buffer.from(text, 'base64')
  // A pattern for a text of this length would need too much of the stack.
  if (bytes.toString('base64') !== text) throw new AppError('invalid_request', `${name}: It must be Base64`)
  return bytes
}

export class Base64Member {
  readonly #name: string
  readonly #restBytesMax: number
  readonly #rest = new ByteBuffer()
  #depth = 0
  /** The last of `{ [ , :` outside of texts. */
  #mark = 0
  #isInText = false
  #isEscaped = false
  /** The name of the member at depth 1 that was read last. */
  #key = ''
  #isInKey = false
  #isInside = false
  #isFound = false
  /** Characters that the next piece completes. */
  #open = ''
  #isPadded = false

  /** `restBytesMax` bounds the object without the member. */
  constructor(name: string, restBytesMax: number) {
    this.#name = name
    this.#restBytesMax = restBytesMax
  }

  /** The object with an empty text as the member, once all pieces are taken. It is as valid as the body was. */
  get rest(): Uint8Array {
    return this.#rest.bytes()
  }

  /** Returns the bytes that the piece has of the file. Throws `invalid_request` or `too_large`. */
  take(piece: Buffer): Buffer {
    const found = new ByteBuffer()
    for (let at = 0; at < piece.length; ) {
      if (!this.#isInside) {
        at = this.#skip(piece, at)
        continue
      }
      const end = piece.indexOf(QUOTE, at)
      found.append(this.#decode(piece.toString('latin1', at, end < 0 ? piece.length : end), end >= 0))
      this.#isInside = end < 0
      at = end < 0 ? piece.length : end
    }
    return found.bytes()
  }

  /** Reads up to the text of the member or the end of the piece, and returns the place behind. */
  #skip(piece: Buffer, from: number): number {
    let at = from
    while (at < piece.length && !this.#isInside) this.#read(piece[at++] as number)
    if (this.#rest.length + at - from > this.#restBytesMax) throw tooLarge(this.#restBytesMax)
    // A copy: the piece is a part of a larger block of memory.
    this.#rest.append(Uint8Array.prototype.slice.call(piece, from, at))
    return at
  }

  #read(byte: number): void {
    if (this.#isInText) {
      this.#readText(byte)
    } else if (byte === QUOTE) {
      this.#isInText = true
      this.#isInKey = this.#depth === 1 && this.#mark !== COLON
      if (this.#isInKey) this.#key = ''
      else if (this.#depth === 1 && this.#key === this.#name) this.#begin()
    } else if ((byte | 32) === 123) {
      // `{` and `[` differ in one bit only, and so do `}` and `]`.
      this.#depth++
      this.#mark = byte
    } else if ((byte | 32) === 125) this.#depth--
    else if (byte === COMMA || byte === COLON) this.#mark = byte
  }

  #readText(byte: number): void {
    if (this.#isEscaped) this.#isEscaped = false
    else if (byte === BACKSLASH) this.#isEscaped = true
    else if (byte === QUOTE) {
      this.#isInText = false
      this.#isInKey = false
      return
    }
    if (this.#isInKey) this.#key += String.fromCharCode(byte)
  }

  #begin(): void {
    if (this.#isFound) throw new AppError('invalid_request', `${this.#name}: It is given twice`)
    this.#isFound = true
    this.#isInside = true
  }

  #decode(text: string, isLast: boolean): Buffer {
    const all = this.#open + text
    const cut = isLast ? all.length : (BEGUN_ESCAPE.exec(all)?.index ?? all.length)
    const plain = all
      .slice(0, cut)
      .replace(ESCAPED, (_, hex?: string) => (hex === undefined ? '/' : String.fromCharCode(Number.parseInt(hex, 16))))
    const whole = isLast ? plain.length : plain.length - (plain.length % 4)
    this.#open = plain.slice(whole) + all.slice(cut)
    const ready = plain.slice(0, whole)
    const bytes = base64Bytes(this.#isPadded && ready !== '' ? '=' : ready, this.#name)
    this.#isPadded = ready.endsWith('=')
    return bytes
  }
}
