/** Splits the bytes of an IMAP server into responses (RFC 3501, section 7), whose literals may contain line ends. */
import { ByteBuffer } from '@sluice/kit'
import { LITERAL_MARK } from './imap-values.ts'

export interface ImapResponse {
  /** `*`, `+` or the tag of a command. */
  readonly tag: string
  /** The text after the tag, with one character for each byte, and `LITERAL_MARK` for each literal. */
  readonly text: string
  readonly literals: readonly Buffer[]
}

/** A structure of a mail with very many parts is one line. */
export const LINE_BYTES_MAX = 1_048_576
const LITERALS_MAX = 1000
const LINE_FEED = 0x0a
const LITERAL = /\{(\d{1,10})\+?\}$/

export class ResponseSplitter {
  readonly #bytesMax: number
  /** The beginning of a line, or of a literal. */
  readonly #buffer = new ByteBuffer()
  /** The finished lines of the response that is being read. */
  #text = ''
  #literals: Buffer[] = []
  #literalBytes = 0
  /** The size of the literal that is being read; undefined while a line is read. */
  #literal: number | undefined

  /** `bytesMax` bounds the literals of one response together. */
  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax
  }

  /** Whether a response has begun and not ended. */
  get isPartial(): boolean {
    return this.#buffer.length > 0 || this.#text !== ''
  }

  /** Returns the responses that these bytes complete. Throws an `Error` beyond a limit; the connection is then of no more use. */
  take(bytes: Buffer): ImapResponse[] {
    const responses: ImapResponse[] = []
    for (let at = 0; at < bytes.length; ) {
      const end = this.#literal === undefined ? endOfLine(bytes, at) : at + this.#literal - this.#buffer.length
      this.#buffer.append(bytes.subarray(at, end))
      at = Math.min(end, bytes.length)
      if (this.#literal !== undefined) this.#endLiteral(this.#literal)
      else {
        if (this.#buffer.length > LINE_BYTES_MAX) throw new Error('a line of the server is too long')
        const response = bytes[at - 1] === LINE_FEED ? this.#endLine() : undefined
        if (response) responses.push(response)
      }
    }
    return responses
  }

  #endLiteral(size: number): void {
    if (this.#buffer.length < size) return
    this.#literals.push(this.#buffer.bytes())
    this.#buffer.clear()
    this.#literal = undefined
  }

  #endLine(): ImapResponse | undefined {
    const line = this.#buffer
      .bytes()
      .toString('latin1')
      .replace(/\r?\n$/, '')
      .replaceAll(LITERAL_MARK, '')
    this.#buffer.clear()
    const size = LITERAL.exec(line)
    if (size) {
      this.#beginLiteral(line.slice(0, size.index), Number(size[1]))
      return undefined
    }
    const whole = this.#text + line
    const literals = this.#literals
    this.#text = ''
    this.#literals = []
    this.#literalBytes = 0
    const space = whole.indexOf(' ')
    return space < 0 ? { tag: whole, text: '', literals } : { tag: whole.slice(0, space), text: whole.slice(space + 1), literals }
  }

  #beginLiteral(line: string, size: number): void {
    this.#text += line + LITERAL_MARK
    this.#literalBytes += size
    if (this.#literalBytes > this.#bytesMax || this.#literals.length >= LITERALS_MAX || this.#text.length > LINE_BYTES_MAX)
      throw new Error('a response of the server is too large')
    this.#literal = size
    this.#endLiteral(size)
  }
}

/** Returns the index after the next line end; the length without one. */
function endOfLine(bytes: Buffer, from: number): number {
  const end = bytes.indexOf(LINE_FEED, from)
  return end < 0 ? bytes.length : end + 1
}
