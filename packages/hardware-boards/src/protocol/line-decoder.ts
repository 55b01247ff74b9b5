/** Cuts the bytes of a line-framed protocol into lines, however they arrive. */
import { ByteBuffer } from '@sluice/kit'

/** Firmware keeps to 256 bytes a line; a list of all pins of a large chip is longer. */
export const LINE_BYTES_MAX = 4096
const NEWLINE = 0x0a

/**
 * Takes bytes as they come and calls back with each line, without its end, in order. A line that is longer than
 * `LINE_BYTES_MAX` is dropped as a whole, and not kept meanwhile.
 */
export function createLineDecoder(onLine: (line: string) => void): (bytes: Uint8Array) => void {
  const held = new ByteBuffer()
  let tooLong = false

  const hold = (part: Buffer): void => {
    if (tooLong || part.length === 0) return
    if (held.length + part.length > LINE_BYTES_MAX) {
      tooLong = true
      held.clear()
      return
    }
    // The port reuses the buffer these bytes are in.
    held.append(Buffer.from(part))
  }
  const finish = (part: Buffer): void => {
    const whole = !tooLong && held.length + part.length <= LINE_BYTES_MAX
    if (whole) held.append(part)
    const text = whole ? held.bytes().toString('utf8') : ''
    held.clear()
    tooLong = false
    if (!whole) return
    onLine(text.endsWith('\r') ? text.slice(0, -1) : text)
  }

  return (bytes) => {
    const chunk = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    let start = 0
    for (let end = chunk.indexOf(NEWLINE); end >= 0; end = chunk.indexOf(NEWLINE, start)) {
      finish(chunk.subarray(start, end))
      start = end + 1
    }
    hold(chunk.subarray(start))
  }
}
