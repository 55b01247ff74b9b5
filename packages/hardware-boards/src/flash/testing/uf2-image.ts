/** Valid and invalid UF2 images for tests. */

export interface Uf2Fields {
  flags?: number
  address?: number
  size?: number
  number?: number
  count?: number
  family?: number
  first?: number
  second?: number
  end?: number
}

/** Returns an image of `blocks` blocks; `change` overrides fields of a block. */
export function uf2Image(blocks: number, change: (block: number) => Uf2Fields = () => ({})): Buffer {
  const image = Buffer.alloc(blocks * 512)
  for (let block = 0; block < blocks; block++) {
    const fields = { flags: 0x2000, address: 0x10000000 + block * 256, size: 256, number: block, count: blocks, family: 0xe48bff56 }
    const { flags, address, size, number, count, family, first, second, end } = {
      ...fields,
      first: 0x0a324655,
      second: 0x9e5d5157,
      end: 0x0ab16f30,
      ...change(block),
    }
    const at = block * 512
    for (const [index, word] of [first, second, flags, address, size, number, count, family].entries())
      image.writeUInt32LE(word, at + index * 4)
    image.fill(block & 0xff, at + 32, at + 288)
    image.writeUInt32LE(end, at + 508)
  }
  return image
}
