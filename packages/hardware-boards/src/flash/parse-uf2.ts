/**
 * Checks a UF2 image block by block, and refuses blocks that the board's boot loader would misread or that are for another
 * chip.
 */
import { AppError } from '@sluice/sdk'

const BLOCK_BYTES = 512
const PAYLOAD_BYTES = 256
const MAGIC_START = 0x0a324655
const MAGIC_SECOND = 0x9e5d5157
const MAGIC_END = 0x0ab16f30
const NOT_FOR_FLASH = 0x00000001
const HAS_FAMILY = 0x00002000

/** The family id of the RP2040. */
export const FAMILY_RP2040 = 0xe48bff56

export interface Uf2Target {
  readonly family: number
  readonly flash: { readonly start: number; readonly length: number }
}

export interface Uf2Image {
  readonly blocks: number
  /** The bytes of flash that the image writes. */
  readonly bytes: number
}

/** Returns the size of an image that fills all of flash: each page of 256 bytes takes a block of 512. */
export const uf2BytesMax = ({ flash }: Uf2Target): number => (flash.length / PAYLOAD_BYTES) * BLOCK_BYTES

/** Throws `invalid_request` with the first wrong block and its error. */
export function parseUf2(image: Uint8Array, target: Uf2Target): Uf2Image {
  if (image.length === 0) throw wrong('it is empty')
  if (image.length % BLOCK_BYTES !== 0) throw wrong(`its ${image.length} bytes are not a multiple of ${BLOCK_BYTES}`)
  if (image.length > uf2BytesMax(target)) throw wrong(`its ${image.length} bytes are more than the board's flash holds`)
  const view = new DataView(image.buffer, image.byteOffset, image.byteLength)
  const blocks = image.length / BLOCK_BYTES
  const written = new Set<number>()
  for (let block = 0; block < blocks; block++) {
    const address = checkBlock(view, block, blocks, target)
    if (written.has(address)) throw wrong(`block ${block} writes to 0x${address.toString(16)} a second time`)
    written.add(address)
  }
  return { blocks, bytes: blocks * PAYLOAD_BYTES }
}

/** Returns the address that the block writes to. */
function checkBlock(view: DataView, block: number, blocks: number, { family, flash }: Uf2Target): number {
  const word = (index: number): number => view.getUint32(block * BLOCK_BYTES + index * 4, true)
  const [first, second, flags, address, size, number, count, kind] = [0, 1, 2, 3, 4, 5, 6, 7].map(word)
  const end = view.getUint32((block + 1) * BLOCK_BYTES - 4, true)
  if (first !== MAGIC_START || second !== MAGIC_SECOND || end !== MAGIC_END) throw wrong(`block ${block} has no UF2 magic numbers`)
  if (flags === undefined || address === undefined || size === undefined) throw wrong(`block ${block} has no header`)
  if (flags & NOT_FOR_FLASH) throw wrong(`block ${block} is not meant for flash`)
  if (!(flags & HAS_FAMILY)) throw wrong(`block ${block} does not name its chip`)
  if (kind !== family) throw wrong(`block ${block} is for another chip (0x${(kind ?? 0).toString(16)}, not 0x${family.toString(16)})`)
  if (number !== block || count !== blocks) throw wrong(`block ${block} is numbered ${number} of ${count}, not ${block} of ${blocks}`)
  if (size !== PAYLOAD_BYTES) throw wrong(`block ${block} carries ${size} bytes, not ${PAYLOAD_BYTES}`)
  if (address % PAYLOAD_BYTES !== 0) throw wrong(`block ${block} writes to 0x${address.toString(16)}, which is not the start of a page`)
  if (address < flash.start || address + size > flash.start + flash.length)
    throw wrong(`block ${block} writes to 0x${address.toString(16)}, outside of the board's flash`)
  return address
}

const wrong = (why: string): AppError => new AppError('invalid_request', `The image is not a UF2 image for this board: ${why}`)
