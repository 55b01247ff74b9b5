/** Reads the body of a response into one block of memory. */
import { ByteBuffer } from './byte-buffer.ts'

type Answer = Pick<Response, 'body'>

const piecesOf = ({ body }: Answer): AsyncIterable<Uint8Array> => (body ?? []) as AsyncIterable<Uint8Array>

/** Returns the whole body; undefined if it has more than `bytesMax` bytes, the rest of which is not read. */
export async function readUpTo(answer: Answer, bytesMax: number): Promise<Buffer<ArrayBuffer> | undefined> {
  const read = new ByteBuffer()
  // Leaving the loop early cancels the body.
  for await (const piece of piecesOf(answer)) {
    if (read.length + piece.length > bytesMax) return undefined
    read.append(piece)
  }
  return read.bytes()
}

/** Returns the first `bytesMax` bytes of the body. The rest is not read. */
export async function readHead(answer: Answer, bytesMax: number): Promise<Buffer<ArrayBuffer>> {
  const read = new ByteBuffer()
  for await (const piece of piecesOf(answer)) {
    read.append(piece.subarray(0, bytesMax - read.length))
    if (read.length >= bytesMax) break
  }
  return read.bytes()
}

/** Returns the whole body of a response that `publicFetch` limits by `responseBytesMax`. Rejects like the body. */
export async function readAll(answer: Answer): Promise<Uint8Array<ArrayBuffer>> {
  const read = new ByteBuffer()
  for await (const piece of piecesOf(answer)) read.append(piece)
  const { buffer, byteOffset, byteLength } = read.bytes()
  return new Uint8Array(buffer, byteOffset, byteLength)
}
