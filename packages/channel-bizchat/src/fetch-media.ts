/** The bytes of an attachment, from the host of `api_url` at any port and from no other host, because the token goes with the request. */

import { readUpTo, signalScope } from '@sluice/kit'
import { AppError, type Attachment, errorText, type Host, type Media, sameOrigin } from '@sluice/sdk'
import { type Api, authorization } from './send.ts'

const BYTES_MAX = 26_214_400
const REDIRECTS_MAX = 5
const TIMEOUT_MS = 60_000

export type MediaApi = Api & Pick<Host, 'publicFetch' | 'publicAddresses'>

export interface FetchOptions {
  readonly bytesMax: number
  readonly signal: AbortSignal
}

/** See `Channel.fetchMedia`. */
export async function fetchMedia(api: MediaApi, { source }: Attachment, { bytesMax, signal }: FetchOptions): Promise<Media> {
  using limit = signalScope([signal], TIMEOUT_MS)
  try {
    const response = await follow(api, 'url' in source ? source.url : '', limit.signal)
    const mime = response.headers.get('content-type')?.split(';')[0]?.trim().toLowerCase()
    const most = Math.min(bytesMax, BYTES_MAX)
    const bytes = await readUpTo(response, most)
    if (!bytes) throw new AppError('too_large', `The attachment is larger than ${most} bytes`)
    return { bytes, ...(mime && { mime }) }
  } catch (error) {
    if (error instanceof AppError && !['upstream', 'upstream_timeout'].includes(error.code)) throw error
    if (error instanceof AppError) throw new AppError('unavailable', `The attachment cannot be fetched now: ${errorText(error)}`)
    if (signal.aborted) throw new AppError('aborted', 'The download from bizchat was cut off')
    throw new AppError(
      'unavailable',
      limit.timedOut ? `bizchat sent no whole file within ${TIMEOUT_MS / 1000} s` : 'The download broke off',
    )
  }
}

/** Each hop is checked before it is asked. */
async function follow(api: MediaApi, first: string, signal: AbortSignal): Promise<Response> {
  let url = first
  for (let redirects = 0; redirects <= REDIRECTS_MAX; redirects++) {
    checkHost(url, api.url)
    const response = await ask(api, url, signal)
    if (response.ok) return response
    await response.body?.cancel()
    const location = response.headers.get('location')
    if (![301, 302, 303, 307, 308].includes(response.status) || location === null) throw refused(response.status)
    url = URL.parse(location, url)?.href ?? ''
  }
  throw new AppError('invalid_request', `The attachment is more than ${REDIRECTS_MAX} redirects away`)
}

/** The request may leave for another port of the host only where it cannot reach a private network, unless the API itself is there. */
async function ask(api: MediaApi, url: string, signal: AbortSignal): Promise<Response> {
  const headers = authorization(api)
  if (sameOrigin(url, api.url) || (await isPrivate(api, signal))) return api.fetch(url, { headers, redirect: 'manual', signal })
  return api.publicFetch(url, { headers, signal, responseBytesMax: BYTES_MAX + 1, admit: (hop) => checkHost(hop.href, api.url) })
}

async function isPrivate({ url, publicAddresses }: MediaApi, signal: AbortSignal): Promise<boolean> {
  try {
    await publicAddresses(new URL(url).hostname, signal)
    return false
  } catch (error) {
    if (error instanceof AppError && error.code === 'forbidden') return true
    throw error
  }
}

/** Throws `forbidden`. A user name in a URL would replace the token, and plain HTTP would show it. */
function checkHost(text: string, apiUrl: string): void {
  const [url, api] = [URL.parse(text), URL.parse(apiUrl)]
  const isOwn = url !== null && url.hostname === api?.hostname && url.username === '' && url.password === ''
  if (!isOwn || !(url.protocol === api.protocol || url.protocol === 'https:'))
    throw new AppError('forbidden', 'The attachment is not on the host of api_url')
}

function refused(status: number): AppError {
  const mayPass = status >= 500 || [401, 408, 429].includes(status)
  return new AppError(mayPass ? 'unavailable' : 'invalid_request', `bizchat answered ${status} when asked for an attachment`)
}
