/** Makes tar archives, valid and invalid ones. */
import { gzipSync } from 'node:zlib'

export interface TarEntry {
  readonly name: string
  readonly content?: Uint8Array | string
  readonly type?: string
  readonly link?: string
  readonly prefix?: string
  /** Overrides the size in the header, also with a wrong one; `checksum` and `magic` do the same for their fields. */
  readonly size?: string
  readonly checksum?: string
  readonly magic?: string
}

const BLOCK = 512

/** `end` follows the entries; a valid archive ends with two blocks of zeros. */
export function tarOf(entries: readonly TarEntry[], end: Uint8Array = Buffer.alloc(2 * BLOCK)): Buffer {
  return Buffer.concat([...entries.flatMap(blocksOf), end])
}

export const tarGz = (entries: readonly TarEntry[]): Buffer => gzipSync(tarOf(entries))

function blocksOf({ name, content = '', type = '0', link = '', prefix = '', size, checksum, magic = 'ustar\0' }: TarEntry): Buffer[] {
  const bytes = Buffer.from(content)
  const header = Buffer.alloc(BLOCK)
  const put = (text: string, at: number, length: number) => header.write(text.slice(0, length), at, 'latin1')
  put(name, 0, 100)
  put('0000644\0', 100, 8)
  put('0000000\0', 108, 8)
  put('0000000\0', 116, 8)
  put(size ?? `${bytes.length.toString(8).padStart(11, '0')}\0`, 124, 12)
  put('00000000000\0', 136, 12)
  put('        ', 148, 8)
  put(type, 156, 1)
  put(link, 157, 100)
  put(`${magic}00`, 257, 8)
  put(prefix, 345, 155)
  const sum = header.reduce((total, byte) => total + byte, 0)
  put(checksum ?? `${sum.toString(8).padStart(6, '0')}\0 `, 148, 8)
  return [header, bytes, Buffer.alloc((BLOCK - (bytes.length % BLOCK)) % BLOCK)]
}
