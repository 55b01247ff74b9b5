/** The bytes of an attachment, from the host of `api_url` and from no other (§4.2), for the token goes with the request. */
import { AppError, type Attachment, type Media, readUpTo, sameOrigin, signalScope } from '@sluice/sdk'
import { type Api, authorization } from './send.ts'

const BYTES_MAX = 26_214_400
const REDIRECTS_MAX = 5
const TIMEOUT_MS = 60_000

export interface FetchOptions {
  readonly bytesMax: number
  readonly signal: AbortSignal
}

/** See `Channel.fetchMedia`. */
export async function fetchMedia(api: Api, { source }: Attachment, { bytesMax, signal }: FetchOptions): Promise<Media> {
  using limit = signalScope([signal], TIMEOUT_MS)
  try {
    const response = await follow(api, 'url' in source ? source.url : '', limit.signal)
    const mime = response.headers.get('content-type')?.split(';')[0]?.trim().toLowerCase()
    const most = Math.min(bytesMax, BYTES_MAX)
    const bytes = await readUpTo(response, most)
    if (!bytes) throw new AppError('too_large', `The attachment is larger than ${most} bytes`)
    return { bytes, ...(mime && { mime }) }
  } catch (error) {
    if (error instanceof AppError) throw error
    if (signal.aborted) throw new AppError('aborted', 'The download from bizchat was cut off')
    throw new AppError(
      'unavailable',
      limit.timedOut ? `bizchat sent no whole file within ${TIMEOUT_MS / 1000} s` : 'The download broke off',
    )
  }
}

/** Each hop is checked before it is asked. */
async function follow(api: Api, first: string, signal: AbortSignal): Promise<Response> {
  let url = first
  for (let redirects = 0; redirects <= REDIRECTS_MAX; redirects++) {
    if (!isOwnHost(url, api.url)) throw new AppError('forbidden', 'The attachment is not on the host of api_url')
    const response = await api.fetch(url, { headers: authorization(api), redirect: 'manual', signal })
    if (response.ok) return response
    await response.body?.cancel()
    const location = response.headers.get('location')
    if (![301, 302, 303, 307, 308].includes(response.status) || location === null) throw refused(response.status)
    url = URL.parse(location, url)?.href ?? ''
  }
  throw new AppError('invalid_request', `The attachment is more than ${REDIRECTS_MAX} redirects away`)
}

/** A user name in a URL would replace the token. */
const isOwnHost = (url: string, apiUrl: string): boolean =>
  sameOrigin(url, apiUrl) && new URL(url).username === '' && new URL(url).password === ''

function refused(status: number): AppError {
  const mayPass = status >= 500 || [401, 408, 429].includes(status)
  return new AppError(mayPass ? 'unavailable' : 'invalid_request', `bizchat answered ${status} when asked for an attachment`)
}
