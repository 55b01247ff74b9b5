/** Collects bytes that arrive in pieces of any size. */

const CAPACITY_MIN = 256
const GROWTH = 1.5

/**
 * One growing block of memory, whose size is proportional to the number of bytes. A list of chunks would let a sender of
 * one-byte pieces use a hundred times as much memory.
 */
export class ByteBuffer {
  /** The first piece, which is not copied while it is the only one. */
  #only: Uint8Array | undefined
  /** Made with the second piece: most bodies have only one. */
  #block: ArrayBuffer | undefined
  #length = 0

  /** The number of bytes. */
  get length(): number {
    return this.#length
  }

  /** Keeps the first piece without a copy, so the caller must not change it afterwards. */
  append(piece: Uint8Array): void {
    if (piece.length === 0) return
    const length = this.#length + piece.length
    if (this.#length === 0) this.#only = piece
    else {
      this.#block ??= new ArrayBuffer(0)
      const { byteLength } = this.#block
      // A transfer frees the smaller block at once, instead of leaving it to the garbage collector.
      if (length > byteLength) this.#block = this.#block.transfer(Math.max(length, Math.ceil(byteLength * GROWTH), CAPACITY_MIN))
      const bytes = new Uint8Array(this.#block)
      if (this.#only) bytes.set(this.#only)
      this.#only = undefined
      bytes.set(piece, this.#length)
    }
    this.#length = length
  }

  /** Returns all bytes without a copy. The result is valid until the next `append`. */
  bytes(): Buffer<ArrayBuffer> {
    if (Buffer.isBuffer(this.#only)) return this.#only as Buffer<ArrayBuffer>
    const { buffer, byteOffset, byteLength } = this.#only ?? new Uint8Array(this.#block ?? new ArrayBuffer(0), 0, this.#length)
    return Buffer.from(buffer as ArrayBuffer, byteOffset, byteLength)
  }

  /** Removes all bytes and frees their memory. */
  clear(): void {
    this.#only = undefined
    this.#block = undefined
    this.#length = 0
  }
}
