/** Downloads the file of a message from a platform, within limits of size and time. */
import { AppError, type Media } from '@sluice/sdk'
import { mediaType } from './media-type.ts'
import { readUpTo } from './read-up-to.ts'
import { signalScope } from './signal-scope.ts'

export interface FileDownload {
  /** The channel's name, for errors. */
  readonly provider: string
  readonly bytesMax: number
  readonly signal: AbortSignal
  /** Whether the request carries a credential. A 401 is temporary then, because the operator can correct the credential. */
  readonly isAuthorized: boolean
  /** Requests the file. Must not follow a redirect to an address that it has not checked. */
  request(signal: AbortSignal): Promise<Response>
}

const TIMEOUT_MS = 60_000

/**
 * Returns the bytes and the media type in the answer, if it has one. Throws as `Channel.fetchMedia` does: `unavailable` if a
 * later attempt may succeed, `invalid_request` for another refusal or a redirect, `too_large` beyond `bytesMax`, `aborted`, and
 * any `AppError` of `request`.
 */
export async function downloadFile({ provider, bytesMax, signal, isAuthorized, request }: FileDownload): Promise<Media> {
  using limit = signalScope([signal], TIMEOUT_MS)
  try {
    const response = await request(limit.signal)
    if (!response.ok) {
      await response.body?.cancel()
      throw refusal(provider, response.status, isAuthorized)
    }
    const bytes = await readUpTo(response, bytesMax)
    if (!bytes) throw new AppError('too_large', `The attachment is larger than ${bytesMax} bytes`)
    const mime = mediaType(response.headers)
    return { bytes, ...(mime && { mime }) }
  } catch (error) {
    if (error instanceof AppError) throw error
    if (signal.aborted) throw new AppError('aborted', `The download from ${provider} was aborted`)
    const problem = limit.timedOut
      ? `${provider} did not send the whole file within ${TIMEOUT_MS / 1000} s`
      : `The download from ${provider} was interrupted`
    throw new AppError('unavailable', problem)
  }
}

function refusal(provider: string, status: number, isAuthorized: boolean): AppError {
  const isTemporary = status >= 500 || status === 408 || status === 429 || (status === 401 && isAuthorized)
  return new AppError(isTemporary ? 'unavailable' : 'invalid_request', `${provider} answered ${status} to the request for an attachment`)
}
