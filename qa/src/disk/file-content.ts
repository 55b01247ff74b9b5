/** The bytes of one file, in memory. */

const BYTES_MAX = 256 * 1024 * 1024

export class FileContent {
  readonly #buffer = new ArrayBuffer(0, { maxByteLength: BYTES_MAX })
  /** Grows and shrinks with the file. */
  readonly bytes = new Uint8Array(this.#buffer)

  /** What is added is zero. */
  resize(length: number): void {
    this.#buffer.resize(length)
  }

  /** At least so long. */
  grow(length: number): void {
    if (length > this.bytes.length) this.resize(length)
  }

  write(position: number, bytes: Uint8Array): void {
    this.grow(position + bytes.length)
    this.bytes.set(bytes, position)
  }
}
