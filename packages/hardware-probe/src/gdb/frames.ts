/** Frames of the GDB remote protocol: `$body#checksum`, acknowledgements, run lengths and escapes, from bytes in any pieces. */

/** Of one packet, run lengths expanded. */
const PACKET_CHARS_MAX = 16_384

export type Frame =
  | { readonly kind: 'ack' | 'nak' }
  /** Its checksum is wrong. */
  | { readonly kind: 'spoiled' }
  | { readonly kind: 'packet' | 'notification'; readonly body: string }

const [ACK, NAK, PACKET, NOTIFICATION, END, REPEAT] = [...'+-$%#*'].map((char) => char.charCodeAt(0))
/** A count is a printable character, this much above it. */
const REPEAT_BASE = 29

/** A packet as it goes over the wire. `body` has no character that needs an escape. */
export const frameOf = (body: string): Uint8Array => Buffer.from(`$${body}#${checksumOf(body)}`, 'latin1')

const checksumOf = (body: string): string => {
  let sum = 0
  for (let index = 0; index < body.length; index++) sum += body.charCodeAt(index)
  return hexByte(sum & 0xff)
}

const hexByte = (byte: number): string => byte.toString(16).padStart(2, '0')

/** What an escape stands for, in the parts of replies that are binary. */
export const unescaped = (text: string): string =>
  text.replace(/\}([\s\S])/g, (_, char: string) => String.fromCharCode(char.charCodeAt(0) ^ 0x20))

/**
 * Takes bytes as they come and gives the frames that are whole. What is between frames is left out, and a frame that is
 * broken off by the next is too. Throws a `RangeError` for a packet without an end.
 */
export function createFrames(): (bytes: Uint8Array) => Frame[] {
  let kind: 'packet' | 'notification' | undefined
  let body = ''
  let sum = 0
  let isCount = false
  /** The two digits after the body; undefined while it goes on. */
  let digits: string | undefined

  const start = (byte: number): void => {
    kind = byte === PACKET ? 'packet' : 'notification'
    body = ''
    sum = 0
    isCount = false
    digits = undefined
  }

  const finish = (): Frame | undefined => {
    const whole: Frame | undefined = kind && { kind, body }
    const isRight = digits?.toLowerCase() === hexByte(sum & 0xff)
    // nobody repeats a notification
    const spoiled: Frame | undefined = kind === 'packet' ? { kind: 'spoiled' } : undefined
    kind = undefined
    return isRight ? whole : spoiled
  }

  const inside = (byte: number): void => {
    sum += byte
    if (isCount) {
      body += (body.at(-1) ?? '').repeat(Math.max(0, byte - REPEAT_BASE))
      isCount = false
    } else if (byte === REPEAT) isCount = true
    else body += String.fromCharCode(byte)
    if (body.length > PACKET_CHARS_MAX) throw new RangeError(`a packet of more than ${PACKET_CHARS_MAX} characters`)
  }

  const next = (byte: number): Frame | undefined => {
    if (byte === PACKET) start(byte)
    else if (kind === undefined) {
      if (byte === NOTIFICATION) start(byte)
      else if (byte === ACK || byte === NAK) return { kind: byte === ACK ? 'ack' : 'nak' }
    } else if (digits !== undefined) {
      digits += String.fromCharCode(byte)
      if (digits.length === 2) return finish()
    } else if (byte === END) digits = ''
    else inside(byte)
    return undefined
  }

  return (bytes) => {
    const frames: Frame[] = []
    for (const byte of bytes) {
      const frame = next(byte)
      if (frame) frames.push(frame)
    }
    return frames
  }
}
