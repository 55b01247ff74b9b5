/** Cuts the bytes of a line-framed protocol into lines, however they arrive. */

/** Firmware keeps to 256 bytes a line; a list of all pins of a large chip is longer. */
export const LINE_BYTES_MAX = 4096
const NEWLINE = 0x0a

/**
 * Takes bytes as they come and calls back with each line, without its end, in order. A line that is longer than
 * `LINE_BYTES_MAX` is dropped as a whole, and not kept meanwhile.
 */
export function createLineDecoder(onLine: (line: string) => void): (bytes: Uint8Array) => void {
  let held: Buffer[] = []
  let heldBytes = 0
  let tooLong = false

  const hold = (part: Buffer): void => {
    if (tooLong || part.length === 0) return
    heldBytes += part.length
    if (heldBytes > LINE_BYTES_MAX) {
      tooLong = true
      held = []
      return
    }
    // The bytes belong to a buffer that the port goes on using, and that is much larger.
    held.push(Buffer.from(part))
  }
  const finish = (part: Buffer): void => {
    const bytes = heldBytes + part.length
    const line = heldBytes === 0 ? part : Buffer.concat([...held, part])
    const whole = !tooLong && bytes <= LINE_BYTES_MAX
    held = []
    heldBytes = 0
    tooLong = false
    if (!whole) return
    const text = line.toString('utf8')
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
