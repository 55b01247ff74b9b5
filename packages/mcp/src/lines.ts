/** Splits the output of a program into lines of JSON. */
import { ByteBuffer } from '@sluice/kit'

/** A message of a server may have at most this size. */
export const MESSAGE_BYTES_MAX = 8 * 1024 * 1024

const NEWLINE = 10

/** Yields each complete line as text. Throws when a line is longer than a message may be. */
export async function* linesOf(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const begun = new ByteBuffer()
  const keep = (part: Uint8Array) => {
    if (begun.length + part.length > MESSAGE_BYTES_MAX) throw new Error(`a message has more than ${MESSAGE_BYTES_MAX} bytes`)
    begun.append(part)
  }
  for await (const chunk of chunks) {
    let from = 0
    for (let end = chunk.indexOf(NEWLINE); end >= 0; end = chunk.indexOf(NEWLINE, from)) {
      keep(chunk.subarray(from, end))
      yield begun.bytes().toString('utf8')
      begun.clear()
      from = end + 1
    }
    keep(chunk.subarray(from))
  }
}
