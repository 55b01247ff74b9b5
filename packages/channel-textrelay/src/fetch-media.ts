/** The bytes of an attachment. Its URL is whatever the message says, so only public addresses are asked, and given nothing. */

import { readAll, signalScope } from '@sluice/kit'
import { AppError, type Attachment, errorText, type Host, type Media } from '@sluice/sdk'

const TIMEOUT_MS = 60_000

/** See `Channel.fetchMedia`. */
export async function fetchMedia(
  publicFetch: Host['publicFetch'],
  { source }: Attachment,
  { bytesMax, signal }: { readonly bytesMax: number; readonly signal: AbortSignal },
): Promise<Media> {
  if (!('url' in source)) throw new AppError('invalid_request', 'The attachment has no URL')
  using limit = signalScope([signal], TIMEOUT_MS)
  try {
    const response = await publicFetch(source.url, {
      signal: limit.signal,
      responseBytesMax: bytesMax,
    })
    if (!response.ok) {
      await response.body?.cancel()
      throw refused(response.status)
    }
    const mime = response.headers.get('content-type')?.split(';')[0]?.trim().toLowerCase()
    return { bytes: await readAll(response), ...(mime && { mime }) }
  } catch (error) {
    throw later(error) ? new AppError('unavailable', `The attachment cannot be fetched now: ${errorText(error)}`) : error
  }
}

/** Its URL is good for an hour; then it is refused for good. */
function refused(status: number): AppError {
  const mayPass = status === 408 || status === 429 || status >= 500
  return new AppError(mayPass ? 'unavailable' : 'invalid_request', `The attachment is answered with ${status}`)
}

const later = (error: unknown): boolean => !(error instanceof AppError) || ['upstream', 'upstream_timeout'].includes(error.code)
