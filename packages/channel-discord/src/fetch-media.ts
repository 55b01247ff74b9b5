/** Downloads attachments. Only Discord's file hosts are contacted, and the bot token is never sent to them. */
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
    if (signal.aborted) throw new AppError('aborted', 'The download from discord was aborted')
    throw new AppError(
      'unavailable',
      limit.timedOut ? `discord did not send the whole file within ${TIMEOUT_MS / 1000} s` : 'The download from discord broke off',
    )
  }
}

/** A configured `api_url` other than Discord's own serves its files from the same origin. */
function isFileHost(url: URL, api: URL): boolean {
  if (url.username !== '' || url.password !== '') return false
  if (url.protocol === 'https:' && url.port === '' && FILE_HOSTS.includes(url.hostname)) return true
  return api.hostname !== DEFAULT_HOST && url.origin === api.origin
}

function refused(status: number): AppError {
  const isTemporary = status >= 500 || status === 408 || status === 429
  return new AppError(isTemporary ? 'unavailable' : 'invalid_request', `discord answered ${status} when asked for an attachment`)
}
