/** Reads the body of an answer into one block of memory. */
import { ByteBuffer } from './byte-buffer.ts'

type Answer = Pick<Response, 'body'>

const piecesOf = ({ body }: Answer): AsyncIterable<Uint8Array> => (body ?? []) as AsyncIterable<Uint8Array>

/** The whole body, if it has at most `bytesMax` bytes; undefined if it has more, and then the rest of it is not read. */
export async function readUpTo(answer: Answer, bytesMax: number): Promise<Buffer<ArrayBuffer> | undefined> {
  const read = new ByteBuffer()
  // Leaving the loop early cancels the rest.
  for await (const piece of piecesOf(answer)) {
    if (read.length + piece.length > bytesMax) return undefined
    read.append(piece)
  }
  return read.bytes()
}

/** The first `bytesMax` bytes of the body; the rest of it is not read. */
export async function readHead(answer: Answer, bytesMax: number): Promise<Buffer<ArrayBuffer>> {
  const read = new ByteBuffer()
  for await (const piece of piecesOf(answer)) {
    read.append(piece.subarray(0, bytesMax - read.length))
    if (read.length >= bytesMax) break
  }
  return read.bytes()
}

/** The whole body of an answer that `publicFetch` bounds by `responseBytesMax`. Rejects as the body does. */
export async function readAll(answer: Answer): Promise<Uint8Array<ArrayBuffer>> {
  const read = new ByteBuffer()
  for await (const piece of piecesOf(answer)) read.append(piece)
  const { buffer, byteOffset, byteLength } = read.bytes()
  return new Uint8Array(buffer, byteOffset, byteLength)
}
