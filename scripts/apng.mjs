// Joins PNG pictures of one size to a moving picture: https://www.w3.org/TR/png-3/#apng-frame-based-animation
import { crc32 } from 'node:zlib'

const SIGNATURE_BYTES = 8
/** The end of the animation control chunk: how often it plays; 0 is for ever. */
const PLAYS = 0

/** Returns the chunks of a PNG as `{ type, data }`. */
function chunksOf(png) {
  const chunks = []
  for (let at = SIGNATURE_BYTES; at < png.length; ) {
    const length = png.readUInt32BE(at)
    chunks.push({ type: png.toString('latin1', at + 4, at + 8), data: png.subarray(at + 8, at + 8 + length) })
    at += length + 12
  }
  return chunks
}

function chunk(type, data) {
  const body = Buffer.concat([Buffer.from(type, 'latin1'), data])
  const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)]
  length.writeUInt32BE(data.length)
  sum.writeUInt32BE(crc32(body))
  return Buffer.concat([length, body, sum])
}

function numbers(...values) {
  const data = Buffer.alloc(values.length * 4)
  for (const [at, value] of values.entries()) data.writeUInt32BE(value, at * 4)
  return data
}

/** The control chunk of a frame, which replaces the whole picture for `ms` milliseconds. */
function frameControl(sequence, header, ms) {
  const time = Buffer.alloc(6)
  time.writeUInt16BE(ms, 0)
  time.writeUInt16BE(1000, 2)
  return chunk('fcTL', Buffer.concat([numbers(sequence, header.readUInt32BE(0), header.readUInt32BE(4), 0, 0), time]))
}

/** Returns the moving picture of `frames`, which are `{ png, ms }`. Throws when the pictures differ in size or in their kind of pixels. */
export function movingPicture(frames) {
  const pictures = frames.map(({ png, ms }) => {
    const chunks = chunksOf(png)
    const data = Buffer.concat(chunks.filter(({ type }) => type === 'IDAT').map((each) => each.data))
    return { header: chunks.find(({ type }) => type === 'IHDR').data, data, ms }
  })
  const [first] = pictures
  if (pictures.some(({ header }) => !header.equals(first.header))) throw new Error('the frames differ in size or in their kind of pixels')
  let sequence = 0
  const parts = pictures.flatMap(({ header, data, ms }, at) => [
    frameControl(sequence++, header, ms),
    at === 0 ? chunk('IDAT', data) : chunk('fdAT', Buffer.concat([numbers(sequence++), data])),
  ])
  return Buffer.concat([
    frames[0].png.subarray(0, SIGNATURE_BYTES),
    chunk('IHDR', first.header),
    chunk('acTL', numbers(frames.length, PLAYS)),
    ...parts,
    chunk('IEND', Buffer.alloc(0)),
  ])
}
