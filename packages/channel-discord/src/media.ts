/** Downloads attachments. Only Discord's file hosts are contacted, and the bot token is never sent to them. */
import { downloadFile } from '@sluice/kit'
import { AppError, type Attachment, type Media } from '@sluice/sdk'

const FILE_HOSTS = ['cdn.discordapp.com', 'media.discordapp.net']
const DEFAULT_HOST = 'discord.com'

/** See `Channel.fetchMedia`. Follows no redirect: the file hosts make none. `apiUrl` is the configured `api_url`. */
export async function fetchMedia(
  fetch: typeof globalThis.fetch,
  apiUrl: string,
  { source }: Attachment,
  bytesMax: number,
  signal: AbortSignal,
): Promise<Media> {
  const url = 'url' in source ? URL.parse(source.url) : null
  if (!url || !isFileHost(url, new URL(apiUrl))) throw new AppError('forbidden', 'The attachment is not on a file host of discord')
  return downloadFile({
    provider: 'discord',
    bytesMax,
    signal,
    isAuthorized: false,
    request: (during) => fetch(url.href, { redirect: 'manual', signal: during }),
  })
}

/** A configured `api_url` other than Discord's own serves its files from the same origin. */
function isFileHost(url: URL, api: URL): boolean {
  if (url.username !== '' || url.password !== '') return false
  if (url.protocol === 'https:' && url.port === '' && FILE_HOSTS.includes(url.hostname)) return true
  return api.hostname !== DEFAULT_HOST && url.origin === api.origin
}
