/** Draws the image of the test: a PNG whose left half and right half each have one colour. */
import { crc32, deflateSync } from 'node:zlib'

export const COLOURS = { red: [220, 20, 30], green: [20, 160, 40], blue: [20, 40, 220], yellow: [250, 220, 20] } as const
export type Colour = keyof typeof COLOURS

const SIDE = 96
const SIGNATURE = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a])
const BITS_PER_CHANNEL = 8
const RGB = 2

/** Returns the bytes of the image file. */
export function twoColourImage(left: Colour, right: Colour): Uint8Array {
  const header = Buffer.alloc(13)
  header.writeUInt32BE(SIDE, 0)
  header.writeUInt32BE(SIDE, 4)
  header.set([BITS_PER_CHANNEL, RGB], 8)
  const pixels = Array.from({ length: SIDE }, (_, column) => COLOURS[column < SIDE / 2 ? left : right])
  // A row begins with its filter; 0 means none.
  const row = Buffer.from([0, ...pixels.flat()])
  const rows = Buffer.alloc(row.length * SIDE, row)
  return Buffer.concat([SIGNATURE, chunk('IHDR', header), chunk('IDAT', deflateSync(rows)), chunk('IEND', Buffer.alloc(0))])
}

function chunk(type: string, data: Buffer): Buffer {
  const named = Buffer.concat([Buffer.from(type, 'latin1'), data])
  const whole = Buffer.alloc(named.length + 8)
  whole.writeUInt32BE(data.length, 0)
  whole.set(named, 4)
  whole.writeUInt32BE(crc32(named), named.length + 4)
  return whole
}
