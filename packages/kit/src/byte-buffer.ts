/** Collects bytes that arrive in pieces of any size. */

const CAPACITY_MIN = 256
const GROWTH = 1.5

/**
 * One growing block of memory: what it takes is proportional to the bytes, however small the pieces are. A list of chunks
 * costs a sender one byte and the receiver a hundred.
 */
export class ByteBuffer {
  /** The only piece so far, which is not copied. */
  #only: Uint8Array | undefined
  #block = new ArrayBuffer(0)
  #length = 0

  /** How many bytes there are. */
  get length(): number {
    return this.#length
  }

  /** The first piece is kept as it is: the caller must not write to it afterwards. */
  append(piece: Uint8Array): void {
    if (piece.length === 0) return
    const length = this.#length + piece.length
    if (this.#length === 0) this.#only = piece
    else {
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

  /** All bytes so far, without a copy; not valid any more once something is appended. */
  bytes(): Buffer<ArrayBuffer> {
    const { buffer, byteOffset, byteLength } = this.#only ?? new Uint8Array(this.#block, 0, this.#length)
    return Buffer.from(buffer as ArrayBuffer, byteOffset, byteLength)
  }

  /** Lets go of all bytes. */
  clear(): void {
    this.#only = undefined
    this.#block = new ArrayBuffer(0)
    this.#length = 0
  }
}
