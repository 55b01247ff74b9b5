/** Frames of the GDB remote protocol, `$body#checksum`: encoding, and parsing of bytes that arrive in pieces of any size. */

/** The longest body, with its run lengths expanded. */
const BODY_CHARS_MAX = 16_384

export type Frame =
  | { readonly kind: 'ack' | 'nak' }
  /** A packet with a wrong checksum. */
  | { readonly kind: 'corrupt' }
  | { readonly kind: 'packet' | 'notification'; readonly body: string }

const [ACK, NAK, PACKET, NOTIFICATION, END, REPEAT] = [...'+-$%#*'].map((char) => char.charCodeAt(0))
/** A repeat count is sent as a printable character, this much above the count. */
const REPEAT_BASE = 29

/** Encodes a packet. `body` must not contain a character that needs an escape. */
export const frameOf = (body: string): Uint8Array => Buffer.from(`$${body}#${checksumOf(body)}`, 'latin1')

const checksumOf = (body: string): string => {
  let sum = 0
  for (let index = 0; index < body.length; index++) sum += body.charCodeAt(index)
  return hexByte(sum & 0xff)
}

const hexByte = (byte: number): string => byte.toString(16).padStart(2, '0')

/** Replaces the escapes in the binary part of a reply. */
export const unescaped = (text: string): string =>
  text.replace(/\}([\s\S])/g, (_, char: string) => String.fromCharCode(char.charCodeAt(0) ^ 0x20))

/** Skips bytes between frames, and a frame that is cut off by the next one. */
export class FrameParser {
  #kind: 'packet' | 'notification' | undefined
  #body = ''
  #sum = 0
  /** Whether the next byte is a repeat count. */
  #isCount = false
  /** The checksum digits so far; undefined inside the body. */
  #digits: string | undefined

  /** Returns the frames that are complete. Throws a `RangeError` for a packet without an end. */
  push(bytes: Uint8Array): Frame[] {
    const frames: Frame[] = []
    for (const byte of bytes) {
      const frame = this.#next(byte)
      if (frame) frames.push(frame)
    }
    return frames
  }

  #next(byte: number): Frame | undefined {
    if (byte === PACKET) this.#start('packet')
    else if (this.#kind === undefined) {
      if (byte === NOTIFICATION) this.#start('notification')
      else if (byte === ACK || byte === NAK) return { kind: byte === ACK ? 'ack' : 'nak' }
    } else if (this.#digits !== undefined) {
      this.#digits += String.fromCharCode(byte)
      if (this.#digits.length === 2) return this.#finish(this.#kind, this.#digits)
    } else if (byte === END) this.#digits = ''
    else this.#addToBody(byte)
    return undefined
  }

  #start(kind: 'packet' | 'notification'): void {
    this.#kind = kind
    this.#body = ''
    this.#sum = 0
    this.#isCount = false
    this.#digits = undefined
  }

  #addToBody(byte: number): void {
    this.#sum += byte
    if (this.#isCount) {
      this.#body += (this.#body.at(-1) ?? '').repeat(Math.max(0, byte - REPEAT_BASE))
      this.#isCount = false
    } else if (byte === REPEAT) this.#isCount = true
    else this.#body += String.fromCharCode(byte)
    if (this.#body.length > BODY_CHARS_MAX) throw new RangeError(`a packet of more than ${BODY_CHARS_MAX} characters`)
  }

  /** Drops a corrupt notification, because the protocol does not repeat notifications. */
  #finish(kind: 'packet' | 'notification', digits: string): Frame | undefined {
    this.#kind = undefined
    if (digits.toLowerCase() === hexByte(this.#sum & 0xff)) return { kind, body: this.#body }
    return kind === 'packet' ? { kind: 'corrupt' } : undefined
  }
}
