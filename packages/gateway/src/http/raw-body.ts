/** The bytes of a request's body, up to a limit and not one byte further. */
import type { IncomingMessage } from 'node:http'
import { AppError } from '@sluice/sdk'
import type { HttpContext } from './gate.ts'
import { headersOf } from './headers-of.ts'

/** Of every route that does not say otherwise. */
export const BODY_BYTES_MAX = 65_536

/** Told of bytes as they arrive; what it throws ends the reading. */
export type OnBytes = (bytes: number) => void

const EMPTY = new Uint8Array(0)

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
export async function readBody(c: HttpContext, bytesMax: number, onBytes?: OnBytes): Promise<Uint8Array> {
  checkDeclaredSize(c, bytesMax)
  const incoming = c.env?.incoming
  return incoming ? readIncoming(incoming, bytesMax, onBytes) : readStream(c.req.raw, bytesMax)
}

/** Straight from the socket: a web stream in between doubles the cost of a small request. */
export const readIncoming = (incoming: IncomingMessage, bytesMax: number, onBytes?: OnBytes): Promise<Uint8Array> =>
  new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let bytes = 0
    incoming.on('data', (chunk: Buffer) => {
      bytes += chunk.length
      try {
        if (bytes > bytesMax) throw tooLarge(bytesMax)
        onBytes?.(chunk.length)
        chunks.push(chunk)
      } catch (error) {
        // what else comes is dropped as it comes
        bytes = Number.POSITIVE_INFINITY
        chunks.length = 0
        reject(error)
      }
    })
    incoming.on('end', () => resolve(chunks.length === 1 ? (chunks[0] ?? EMPTY) : Buffer.concat(chunks)))
    incoming.on('error', (error) => reject(cutOff(error)))
    incoming.on('close', () => {
      if (!incoming.readableEnded) reject(cutOff())
    })
    if (incoming.destroyed || incoming.readableEnded) reject(cutOff())
  })

async function readStream({ body }: Request, bytesMax: number): Promise<Uint8Array> {
  if (!body) return EMPTY
  const chunks: Uint8Array[] = []
  let bytes = 0
  try {
    for await (const chunk of body as ReadableStream<Uint8Array>) {
      bytes += chunk.length
      if (bytes > bytesMax) throw tooLarge(bytesMax)
      chunks.push(chunk)
    }
  } catch (error) {
    throw error instanceof AppError ? error : cutOff(error)
  }
  return Buffer.concat(chunks)
}
