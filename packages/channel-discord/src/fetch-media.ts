/** The bytes of an attachment, from the platform's own file hosts and no other; no credential goes with the request. */

import { readUpTo, signalScope } from '@sluice/kit'
import { AppError, type Attachment, type Media } from '@sluice/sdk'

const FILE_HOSTS = ['cdn.discordapp.com', 'media.discordapp.net']
const DEFAULT_HOST = 'discord.com'
const TIMEOUT_MS = 60_000

export interface FetchOptions {
  readonly bytesMax: number
  readonly signal: AbortSignal
}

/** See `Channel.fetchMedia`. Follows no redirect: the file hosts make none. */
export async function fetchMedia(
  { fetch, url: apiUrl }: { readonly fetch: typeof globalThis.fetch; readonly url: string },
  { source }: Attachment,
  { bytesMax, signal }: FetchOptions,
): Promise<Media> {
  const url = 'url' in source ? URL.parse(source.url) : null
  if (!url || !isFileHost(url, new URL(apiUrl))) throw new AppError('forbidden', 'The attachment is not on a file host of discord')
  using limit = signalScope([signal], TIMEOUT_MS)
  try {
    const response = await fetch(url.href, { redirect: 'manual', signal: limit.signal })
    if (!response.ok) {
      await response.body?.cancel()
      throw refused(response.status)
    }
    const mime = response.headers.get('content-type')?.split(';')[0]?.trim().toLowerCase()
    const bytes = await readUpTo(response, bytesMax)
    if (!bytes) throw new AppError('too_large', `The attachment is larger than ${bytesMax} bytes`)
    return { bytes, ...(mime && { mime }) }
  } catch (error) {
    if (error instanceof AppError) throw error
    if (signal.aborted) throw new AppError('aborted', 'The download from discord was cut off')
    throw new AppError(
      'unavailable',
      limit.timedOut ? `discord sent no whole file within ${TIMEOUT_MS / 1000} s` : 'The download broke off',
    )
  }
}

/** A stand-in for the platform keeps its files itself. */
function isFileHost(url: URL, api: URL): boolean {
  if (url.username !== '' || url.password !== '') return false
  if (url.protocol === 'https:' && url.port === '' && FILE_HOSTS.includes(url.hostname)) return true
  return api.hostname !== DEFAULT_HOST && url.origin === api.origin
}

function refused(status: number): AppError {
  const mayPass = status >= 500 || status === 408 || status === 429
  return new AppError(mayPass ? 'unavailable' : 'invalid_request', `discord answered ${status} when asked for an attachment`)
}
