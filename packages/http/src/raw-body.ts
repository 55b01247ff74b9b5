/** The bytes of a request's body, up to a limit and not one byte further. */
import type { IncomingMessage } from 'node:http'
import { ByteBuffer, readUpTo } from '@sluice/kit'
import { AppError } from '@sluice/sdk'
import type { HttpContext } from './gate.ts'
import { headersOf } from './headers-of.ts'

/** Of every route that does not say otherwise. */
export const BODY_BYTES_MAX = 65_536

/** Where the bytes of a body go; see `BodyRoom`. */
export interface BytesRoom {
  /** Called before bytes are kept; what it throws ends the reading. */
  take(bytes: number): void
  /** Its listener ends the reading and lets go of what was read. */
  onEvicted(listener: (error: AppError) => void): void
}

export const tooLarge = (bytesMax: number): AppError => new AppError('too_large', `The body is larger than ${bytesMax} bytes`)
const cutOff = (cause?: unknown): AppError => new AppError('aborted', 'The request ended before its body did', { cause })

/** Throws `too_large` for a body that is announced as larger; nothing of it has been read by then. */
export function checkDeclaredSize(c: HttpContext, bytesMax: number): void {
  const declared = headersOf(c).get('content-length')
  if (declared !== null && Number(declared) > bytesMax) throw tooLarge(bytesMax)
}

/**
 * Reads the body once. Throws `too_large` as soon as it is over the limit, and `aborted` when the client goes away before
 * its end. How long a body may take is the server's to limit (`requestTimeout`).
 */
export async function readBody(c: HttpContext, bytesMax: number, room?: BytesRoom): Promise<Uint8Array> {
  checkDeclaredSize(c, bytesMax)
  const incoming = c.env?.incoming
  return incoming ? readIncoming(incoming, bytesMax, room) : readStream(c.req.raw, bytesMax)
}

/** Straight from the socket: a web stream in between doubles the cost of a small request. */
export const readIncoming = (incoming: IncomingMessage, bytesMax: number, room?: BytesRoom): Promise<Uint8Array> =>
  new Promise((resolve, reject) => {
    const read = new ByteBuffer()
    let isRefused = false
    const refuse = (error: unknown): void => {
      isRefused = true
      read.clear()
      reject(error)
    }
    room?.onEvicted(refuse)
    incoming.on('data', (piece: Buffer) => {
      // The rest of a refused body is dropped as it comes.
      if (isRefused) return
      try {
        if (read.length + piece.length > bytesMax) throw tooLarge(bytesMax)
        room?.take(piece.length)
        read.append(piece)
      } catch (error) {
        refuse(error)
      }
    })
    incoming.on('end', () => resolve(read.bytes()))
    incoming.on('error', (error) => reject(cutOff(error)))
    incoming.on('close', () => {
      if (!incoming.readableEnded) reject(cutOff())
    })
    if (incoming.destroyed || incoming.readableEnded) reject(cutOff())
  })

async function readStream({ body }: Request, bytesMax: number): Promise<Uint8Array> {
  const read = await readUpTo({ body }, bytesMax).catch((error: unknown) => {
    throw cutOff(error)
  })
  if (!read) throw tooLarge(bytesMax)
  return read
}
