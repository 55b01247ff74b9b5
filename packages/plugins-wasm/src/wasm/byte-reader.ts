/** Reads the binary format of WebAssembly. Every method throws `ModuleError` when it would read beyond the end. */
import { ModuleError } from './module-error.ts'

const U32_BYTES_MAX = 5
const utf8 = new TextDecoder('utf-8', { fatal: true })

export class ByteReader {
  readonly bytes: Uint8Array
  /** The offset of the next byte. */
  at = 0

  constructor(bytes: Uint8Array) {
    this.bytes = bytes
  }

  get isAtEnd(): boolean {
    return this.at >= this.bytes.length
  }

  byte(): number {
    const value = this.bytes[this.at]
    if (value === undefined) throw new ModuleError('is cut short')
    this.at += 1
    return value
  }

  /** Reads an unsigned LEB128 number of at most 32 bits. */
  u32(): number {
    let value = 0
    for (let index = 0; index < U32_BYTES_MAX; index++) {
      const byte = this.byte()
      value += (byte & 0x7f) * 2 ** (7 * index)
      if ((byte & 0x80) !== 0) continue
      if (value > 0xffff_ffff) break
      return value
    }
    throw new ModuleError('has a number that is too large')
  }

  /** Skips a signed or unsigned LEB128 number of at most `bytesMax` bytes. */
  skipNumber(bytesMax: number): void {
    for (let index = 0; index < bytesMax; index++) if ((this.byte() & 0x80) === 0) return
    throw new ModuleError('has a number that is too large')
  }

  skip(count: number): void {
    if (count > this.bytes.length - this.at) throw new ModuleError('is cut short')
    this.at += count
  }

  take(count: number): Uint8Array {
    this.skip(count)
    return this.bytes.subarray(this.at - count, this.at)
  }

  rest(): Uint8Array {
    return this.take(this.bytes.length - this.at)
  }

  /** Reads the declarations at the start of a function body and returns the number of its locals, without parameters. */
  locals(): number {
    let count = 0
    for (let groups = this.u32(); groups > 0; groups--) {
      count += this.u32()
      this.byte()
    }
    return count
  }

  name(): string {
    const bytes = this.take(this.u32())
    try {
      return utf8.decode(bytes)
    } catch {
      throw new ModuleError('has a name that is not UTF-8')
    }
  }
}
