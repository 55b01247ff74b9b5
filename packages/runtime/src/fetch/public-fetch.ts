/** `Host.publicFetch`: requests to URLs that a model or a sender names, which reach no address inside the network (SSRF). */
import { AppError, type Host, type PublicRequest } from '@sluice/sdk'
import { USER_AGENT } from './outbound-fetch.ts'
import { type PinnedRequest, sendPinned, toResponse } from './pinned-request.ts'

const REDIRECTS_MAX = 5
const URL_LENGTH_MAX = 8192
const RESPONSE_BYTES_MAX = 10 * 1024 * 1024
const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']
/** Headers of the connection itself, which a caller cannot set. */
const OUR_HEADERS = ['host', 'connection', 'keep-alive', 'transfer-encoding', 'content-length', 'upgrade', 'te', 'trailer', 'expect']
/** Headers that are removed when a redirect leads to another origin. */
const CREDENTIAL_HEADERS = ['authorization', 'cookie', 'proxy-authorization']
const BODY_HEADERS = ['content-type', 'content-encoding', 'content-language', 'content-location']

/** The answer's `url` is the last URL of the redirects. `publicAddresses` checks the addresses of each connection. */
export function createPublicFetch(publicAddresses: Host['publicAddresses']): Host['publicFetch'] {
  return async (url, init) => {
    let next = firstRequest(url, init)
    for (let redirects = 0; ; redirects++) {
      checkUrl(next.url)
      init.admit?.(next.url)
      const request: PinnedRequest = { ...next, addresses: await publicAddresses(next.url.hostname, next.signal, init) }
      const incoming = await sendPinned(request)
      const target = redirectTarget(incoming.statusCode, incoming.headers.location, next.url)
      if (!target) return toResponse(incoming, request, init.responseBytesMax ?? RESPONSE_BYTES_MAX)
      incoming.destroy()
      if (redirects === REDIRECTS_MAX) throw new AppError('upstream', `more than ${REDIRECTS_MAX} redirects`)
      next = redirected(next, target, incoming.statusCode)
    }
  }
}

/** One request of a chain of redirects. */
interface Hop {
  readonly url: URL
  readonly method: string
  readonly headers: Headers
  readonly body: string | Uint8Array | undefined
  readonly signal: AbortSignal
}

function firstRequest(text: string, init: PublicRequest): Hop {
  if (text.length > URL_LENGTH_MAX) throw new AppError('invalid_request', `the URL is longer than ${URL_LENGTH_MAX} characters`)
  const url = URL.parse(text)
  if (!url) throw new AppError('invalid_request', 'the URL is not valid; it starts with https:// or http://')
  let headers: Headers
  try {
    headers = new Headers(init.headers)
  } catch (cause) {
    throw new AppError('invalid_request', 'a header has a character that is not allowed', { cause })
  }
  for (const name of OUR_HEADERS) headers.delete(name)
  // The body is passed on undecoded, so the server must not compress it.
  headers.set('accept-encoding', 'identity')
  if (!headers.has('user-agent')) headers.set('user-agent', USER_AGENT)
  const method = (init.method ?? 'GET').toUpperCase()
  if (!METHODS.includes(method)) throw new AppError('invalid_request', `the method must be one of ${METHODS.join(', ')}`)
  return { url, method, headers, body: init.body, signal: init.signal }
}

function checkUrl(url: URL): void {
  if (url.protocol !== 'http:' && url.protocol !== 'https:') throw new AppError('forbidden', 'only http and https are allowed')
  if (url.username !== '' || url.password !== '') throw new AppError('forbidden', 'a user name or password in the URL is not allowed')
}

function redirectTarget(status: number | undefined, location: string | undefined, from: URL): URL | undefined {
  if (location === undefined || ![301, 302, 303, 307, 308].includes(status ?? 0)) return undefined
  const target = URL.parse(location, from.href)
  if (!target || location.length > URL_LENGTH_MAX) throw new AppError('upstream', `${from.host} redirects to a location that is not a URL`)
  return target
}

/** The next request, as browsers make it: 303, and 301 or 302 of a POST, become a GET; another origin gets no credentials. */
function redirected(hop: Hop, url: URL, status: number | undefined): Hop {
  const headers = new Headers(hop.headers)
  if (url.origin !== hop.url.origin) for (const name of CREDENTIAL_HEADERS) headers.delete(name)
  const becomesGet = status === 303 ? hop.method !== 'HEAD' : status !== 307 && status !== 308 && hop.method === 'POST'
  if (!becomesGet) return { ...hop, url, headers }
  for (const name of BODY_HEADERS) headers.delete(name)
  return { ...hop, url, headers, method: 'GET', body: undefined }
}
