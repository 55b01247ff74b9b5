/** Sends one HTTP request to an address that was checked before, on a connection of its own. */
import type { IncomingMessage, RequestOptions } from 'node:http'
import { pinnedLookup } from '@sluice/kit'
import { proxyAgent } from '@sluice/kit/proxy'
import { AppError, type ResolvedAddress } from '@sluice/sdk'

/** The statuses that a `Response` may have. */
const [STATUS_MIN, STATUS_MAX] = [200, 599]

export interface PinnedRequest {
  readonly url: URL
  /** The checked addresses: the connection uses one of them, even if the name resolves to another by now. */
  readonly addresses: readonly ResolvedAddress[]
  readonly method: string
  readonly headers: Headers
  readonly body: string | Uint8Array | undefined
  readonly signal: AbortSignal
}

/** Resolves to the response as soon as its head has arrived. Rejects with an `AppError`. */
export async function sendPinned({ url, addresses, method, headers, body, signal }: PinnedRequest): Promise<IncomingMessage> {
  const { request } = await (url.protocol === 'https:' ? import('node:https') : import('node:http'))
  // A proxy looks the name up itself.
  const agent = proxyAgent(url)
  const options: RequestOptions = {
    method,
    headers: { ...Object.fromEntries(headers), host: url.host },
    // A connection of its own: a reused one may have been checked for another name.
    ...(agent ? { agent } : { lookup: pinnedLookup(addresses), agent: false }),
    signal,
  }
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>()
  try {
    const outgoing = request(url, options, resolve)
    outgoing.on('error', reject)
    // An unrequested upgrade emits neither a response nor an error.
    outgoing.on('close', () => reject(new Error('the connection ended without an answer')))
    outgoing.end(body)
    return await promise
  } catch (error) {
    throw requestError(url.host, error, signal)
  }
}

/** The answer as a `Response`. Its body fails with `too_large` beyond `bytesMax`. */
export function toResponse(incoming: IncomingMessage, { url, method, signal }: PinnedRequest, bytesMax: number): Response {
  const status = incoming.statusCode ?? 0
  const hasBody = method !== 'HEAD' && ![204, 205, 304].includes(status)
  if (hasBody && Number(incoming.headers['content-length'] ?? 0) > bytesMax) {
    incoming.destroy()
    throw tooLarge(bytesMax)
  }
  const headers = new Headers()
  for (const [name, values] of Object.entries(incoming.headersDistinct)) for (const value of values ?? []) headers.append(name, value)
  if (!hasBody) incoming.resume()
  const body = hasBody ? limitedBody(incoming, bytesMax, (error) => requestError(url.host, error, signal)) : null
  try {
    // The HTTP server of the daemon replaces the global class by one that takes any status.
    if (status < STATUS_MIN || status > STATUS_MAX) throw new RangeError(`the status is ${status}`)
    const response = new Response(body, { status, statusText: incoming.statusMessage ?? '', headers })
    return Object.defineProperty(response, 'url', { value: url.href })
  } catch (cause) {
    incoming.destroy()
    throw new AppError('upstream', `${url.host} gave an answer that is not HTTP`, { cause })
  }
}

/** The body as a stream that fails with `too_large` beyond `bytesMax`, and with `toError` of any other fault. */
function limitedBody(incoming: IncomingMessage, bytesMax: number, toError: (fault: unknown) => AppError): ReadableStream<Uint8Array> {
  const chunks: AsyncIterator<Buffer> = incoming[Symbol.asyncIterator]()
  let bytes = 0
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const { done, value } = await chunks.next().catch((fault: unknown) => {
          throw toError(fault)
        })
        if (done) return controller.close()
        bytes += value.length
        if (bytes <= bytesMax) return controller.enqueue(value)
        incoming.destroy()
        throw tooLarge(bytesMax)
      },
      cancel: () => void incoming.destroy(),
    },
    { highWaterMark: 0 },
  )
}

const tooLarge = (bytesMax: number) => new AppError('too_large', `the answer is longer than ${bytesMax} bytes`)

/** The error that a caller of a request to `host` gets for a fault. */
export function requestError(host: string, cause: unknown, signal: AbortSignal): AppError {
  if (cause instanceof AppError) return cause
  if (signal.aborted) {
    const isTimeout = (signal.reason as Error | undefined)?.name === 'TimeoutError'
    return isTimeout
      ? new AppError('upstream_timeout', `${host} did not answer in time`, { cause })
      : new AppError('aborted', 'the request was aborted', { cause })
  }
  const { code } = cause as NodeJS.ErrnoException
  if (code === 'ERR_INVALID_CHAR' || code === 'ERR_INVALID_HTTP_TOKEN' || code === 'ERR_UNESCAPED_CHARACTERS') {
    return new AppError('invalid_request', 'the method or a header has a character that is not allowed', { cause })
  }
  return new AppError('upstream', `the request to ${host} failed${code ? ` (${code})` : ''}`, { cause })
}
