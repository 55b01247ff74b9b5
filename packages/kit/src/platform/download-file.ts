/** Downloads the file of a message from a platform, within limits of size and time. */
import { AppError, type Media } from '@sluice/sdk'
import { mediaType } from '../text/media-type.ts'
import { signalScope } from '../time/signal-scope.ts'
import { asUnavailable } from './call-provider.ts'
import { readUpTo } from './read-up-to.ts'

export interface FileDownload {
  /** The channel's name, for errors. */
  readonly provider: string
  /** The noun for the file in errors; `attachment` unless given. */
  readonly what?: string
  readonly bytesMax: number
  readonly signal: AbortSignal
  /** Whether the request carries a credential. A 401 is temporary then, because the operator can correct the credential. */
  readonly isAuthorized: boolean
  /** Default 60,000. */
  readonly timeoutMs?: number
  /** Requests the file. Must not follow a redirect to an address that it has not checked. */
  request(signal: AbortSignal): Promise<Response>
}

const TIMEOUT_MS = 60_000
const REDIRECTS_MAX = 5
const REDIRECT_STATUSES = [301, 302, 303, 307, 308]

/**
 * Returns the bytes and the media type in the answer, if it has one. Throws as `Channel.fetchMedia` does: `unavailable` if a
 * later attempt may succeed, `invalid_request` for another refusal or a redirect, `too_large` beyond `bytesMax`, `aborted`, and
 * any other `AppError` of `request`.
 */
export async function downloadFile(download: FileDownload): Promise<Media> {
  const { provider, bytesMax, signal, isAuthorized, timeoutMs = TIMEOUT_MS, what = 'attachment' } = download
  using limit = signalScope([signal], timeoutMs)
  try {
    const response = await download.request(limit.signal)
    if (!response.ok) {
      await response.body?.cancel()
      throw refusal(provider, response.status, isAuthorized, what)
    }
    const bytes = await readUpTo(response, bytesMax)
    if (!bytes) throw new AppError('too_large', `The ${what} is larger than ${bytesMax} bytes`)
    const mime = mediaType(response.headers)
    return { bytes, ...(mime && { mime }) }
  } catch (error) {
    if (error instanceof AppError) throw asUnavailable(error)
    if (signal.aborted) throw new AppError('aborted', `The download from ${provider} was aborted`)
    const problem = limit.timedOut
      ? `${provider} did not send the whole file within ${timeoutMs / 1000} s`
      : `The download from ${provider} was interrupted`
    throw new AppError('unavailable', problem)
  }
}

/**
 * Requests a URL and follows at most 5 redirects. `request` must throw for a URL that it does not accept, and must not follow
 * redirects itself. Returns the first answer that is not a redirect; throws `invalid_request` after too many.
 */
export async function followRedirects(firstUrl: string, request: (url: string) => Promise<Response>): Promise<Response> {
  let url = firstUrl
  for (let redirects = 0; redirects <= REDIRECTS_MAX; redirects++) {
    const response = await request(url)
    const location = response.headers.get('location')
    if (!REDIRECT_STATUSES.includes(response.status) || location === null) return response
    await response.body?.cancel()
    url = URL.parse(location, url)?.href ?? ''
  }
  throw new AppError('invalid_request', `The attachment is more than ${REDIRECTS_MAX} redirects away`)
}

function refusal(provider: string, status: number, isAuthorized: boolean, what: string): AppError {
  const isTemporary = status >= 500 || status === 408 || status === 429 || (status === 401 && isAuthorized)
  return new AppError(isTemporary ? 'unavailable' : 'invalid_request', `${provider} answered ${status} to the request for an ${what}`)
}
