/** Splits a stream of bytes into lines, however the bytes are cut into chunks. */
import { ByteBuffer } from '@sluice/kit'

/** Firmware keeps to 256 bytes per line, except for the list of all pins of a large chip. */
export const LINE_BYTES_MAX = 4096
const NEWLINE = 0x0a

/**
 * Returns a function that takes chunks of bytes and calls `onLine` with each line, without its line end, in order. A line
 * longer than `LINE_BYTES_MAX` is dropped and takes no memory meanwhile.
 */
export function createLineDecoder(onLine: (line: string) => void): (bytes: Uint8Array) => void {
  const held = new ByteBuffer()
  let isTooLong = false

  const hold = (part: Buffer): void => {
    if (isTooLong || part.length === 0) return
    if (held.length + part.length > LINE_BYTES_MAX) {
      isTooLong = true
      held.clear()
      return
    }
    // Copies the bytes, because the port reuses its buffer.
    held.append(Buffer.from(part))
  }
  const finish = (part: Buffer): void => {
    const isWhole = !isTooLong && held.length + part.length <= LINE_BYTES_MAX
    if (isWhole) held.append(part)
    const text = isWhole ? held.bytes().toString('utf8') : ''
    held.clear()
    isTooLong = false
    if (!isWhole) return
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
