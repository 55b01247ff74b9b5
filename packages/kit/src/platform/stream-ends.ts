/** The beginning and the end of a stream of text. */
import { ByteBuffer } from './byte-buffer.ts'

const CONTINUATION_BYTES_MAX = 3

/** Keeps a stream of UTF-8 up to `bytesMax` bytes; of a longer one the same number of bytes of its beginning and of its end. */
export class StreamEnds {
  readonly #headMax: number
  readonly #tailMax: number
  readonly #head = new ByteBuffer()
  /** The last bytes after the head: between once and twice `#tailMax`, if there are so many. */
  readonly #tail = new ByteBuffer()
  #bytes = 0

  constructor(bytesMax: number) {
    this.#headMax = Math.ceil(bytesMax / 2)
    this.#tailMax = bytesMax - this.#headMax
  }

  /** Whether bytes of the middle were dropped. */
  get isCut(): boolean {
    return this.#bytes > this.#headMax + this.#tailMax
  }

  /** The caller must not change the chunk afterwards. */
  push(chunk: Uint8Array): void {
    this.#bytes += chunk.length
    const head = chunk.subarray(0, this.#headMax - this.#head.length)
    this.#head.append(head)
    this.#tail.append(chunk.subarray(head.length))
    if (this.#tail.length <= 2 * this.#tailMax) return
    const last = Uint8Array.from(this.#lastBytes())
    this.#tail.clear()
    this.#tail.append(last)
  }

  /** Returns the text, with a line in place of the bytes that were dropped. Bytes that are not UTF-8 are shown as U+FFFD. */
  text(): string {
    if (!this.isCut) return Buffer.concat([this.#head.bytes(), this.#tail.bytes()]).toString()
    // Characters that a cut divides are dropped.
    const head = new TextDecoder().decode(this.#head.bytes(), { stream: true })
    const tail = this.#lastBytes()
    const start = tail.subarray(0, CONTINUATION_BYTES_MAX).findIndex((byte) => (byte & 0xc0) !== 0x80)
    const dropped = (this.#bytes - this.#headMax - this.#tailMax).toLocaleString('en-US')
    return `${head}\n[… ${dropped} bytes were dropped …]\n${tail.subarray(start < 0 ? CONTINUATION_BYTES_MAX : start).toString()}`
  }

  #lastBytes(): Buffer {
    return this.#tail.bytes().subarray(Math.max(0, this.#tail.length - this.#tailMax))
  }
}
