/** Request bodies: reads their bytes up to a limit and not one byte further, and parses JSON. */
import { isUtf8 } from 'node:buffer'
import type { IncomingMessage } from 'node:http'
import { ByteBuffer, readUpTo } from '@sluice/kit'
import { AppError } from '@sluice/sdk'
import type { HttpContext } from './context.ts'

/** The limit of every route that does not declare its own. */
export const BODY_BYTES_MAX = 65_536

/** Accounts for the bytes of one body while they arrive; see `BodyBudget`. */
export interface BodyRoom {
  /**
   * Takes room for bytes that arrived, if necessary by evicting unfinished bodies of other requests. Throws `unavailable` if
   * that does not suffice, or if this body was evicted itself; the reading then ends.
   */
  take(bytes: number): void
  /** Calls `listener` when this body is evicted. */
  onEvicted(listener: (error: AppError) => void): void
  /** Marks the body as whole: it is not evicted any more. */
  complete(): void
  /** Gives all room back. */
  release(): void
}

export const tooLarge = (bytesMax: number): AppError => new AppError('too_large', `The body is larger than ${bytesMax} bytes`)
export const endedEarly = (cause?: unknown): AppError => new AppError('aborted', 'The request ended before its body did', { cause })
const invalid = (detail: string): AppError => new AppError('invalid_request', detail)

/**
 * Reads the body once. Throws `too_large` as soon as it is over the limit, and `aborted` when the client goes away before
 * its end. The server limits how long a body may take (`requestTimeout`).
 */
export const readBody = (c: HttpContext, bytesMax: number, room?: BodyRoom): Promise<Uint8Array> => {
  const incoming = c.env?.incoming
  return incoming ? readIncoming(incoming, bytesMax, room) : readStream(c.req.raw, bytesMax)
}

/** Reads from Node's own request: a web stream in between doubles the cost of a small request. */
export function readIncoming(incoming: IncomingMessage, bytesMax: number, room?: BodyRoom): Promise<Uint8Array> {
  const read = new ByteBuffer()
  const { promise, ...settle } = Promise.withResolvers<Uint8Array>()
  // Node keeps the last request of a connection, with its listeners, until the next one. They must not keep the body.
  let waiting: typeof settle | undefined = settle
  const refuse = (error: unknown): void => {
    waiting?.reject(error)
    waiting = undefined
    read.clear()
  }
  room?.onEvicted(refuse)
  incoming.on('data', (piece: Buffer) => {
    // The rest of a refused body is dropped as it arrives.
    if (!waiting) return
    try {
      if (read.length + piece.length > bytesMax) throw tooLarge(bytesMax)
      room?.take(piece.length)
      read.append(piece)
    } catch (error) {
      refuse(error)
    }
  })
  incoming.on('end', () => {
    waiting?.resolve(read.bytes())
    waiting = undefined
    read.clear()
  })
  incoming.on('error', (error) => refuse(endedEarly(error)))
  incoming.on('close', () => refuse(endedEarly()))
  if (incoming.destroyed || incoming.readableEnded) refuse(endedEarly())
  return promise
}

async function readStream({ body }: Request, bytesMax: number): Promise<Uint8Array> {
  const read = await readUpTo({ body }, bytesMax).catch((error: unknown) => {
    throw endedEarly(error)
  })
  if (!read) throw tooLarge(bytesMax)
  return read
}

/** Code that walks a deeper value could overflow the stack. */
const NESTING_MAX = 64

/** Throws `invalid_request` unless the bytes are one JSON value in UTF-8. */
export function parseJson(bytes: Uint8Array): unknown {
  if (bytes.length === 0) throw invalid('The body is empty; JSON is expected')
  if (!isUtf8(bytes)) throw invalid('The body is not valid UTF-8')
  const text = asBuffer(bytes).toString('utf8')
  if (isNestedTooDeeply(text)) throw invalid(`The body is nested more than ${NESTING_MAX} levels deep`)
  try {
    return JSON.parse(text)
  } catch {
    // The parser's own message quotes the body.
    throw invalid('The body is not valid JSON')
  }
}

/** Throws `invalid_request` unless the bytes are one JSON object in UTF-8. */
export function parseJsonObject(bytes: Uint8Array): Readonly<Record<string, unknown>> {
  const value = parseJson(bytes)
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw invalid('The body must be a JSON object')
  return value as Record<string, unknown>
}

const asBuffer = (bytes: Uint8Array): Buffer =>
  Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)

const QUOTE = 34
const BACKSLASH = 92

function isNestedTooDeeply(text: string): boolean {
  let depth = 0
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index)
    if (code === QUOTE) index = endOfString(text, index)
    // `{` and `[` differ in one bit only, and so do `}` and `]`.
    else if ((code | 32) === 123) {
      if (++depth > NESTING_MAX) return true
    } else if ((code | 32) === 125) depth -= 1
  }
  return false
}

/** Returns the index of the quote that closes the string opened at `start`, or the length of the text. */
function endOfString(text: string, start: number): number {
  for (let end = text.indexOf('"', start + 1); end >= 0; end = text.indexOf('"', end + 1)) {
    let backslashes = 0
    while (text.charCodeAt(end - 1 - backslashes) === BACKSLASH) backslashes += 1
    if (backslashes % 2 === 0) return end
  }
  return text.length
}
