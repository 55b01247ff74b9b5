/** Reads the samples of a recorder: 16 bits, little endian, one channel. */
import { ByteBuffer } from '@sluice/kit'

/** Samples in a second. */
export const SAMPLE_RATE = 16_000
const SAMPLE_BYTES = 2

/** Takes bytes in pieces of any size and returns the samples that they complete. */
export class SampleReader {
  readonly #bytes = new ByteBuffer()

  push(piece: Uint8Array): Int16Array {
    this.#bytes.append(piece)
    const all = this.#bytes.bytes()
    const samples = Int16Array.from({ length: Math.floor(all.length / SAMPLE_BYTES) }, (_, at) => all.readInt16LE(at * SAMPLE_BYTES))
    const rest = Uint8Array.from(all.subarray(samples.length * SAMPLE_BYTES))
    this.#bytes.clear()
    this.#bytes.append(rest)
    return samples
  }
}
