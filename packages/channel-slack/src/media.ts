/**
 * Files: downloads the files of users, and uploads the files of replies. The token goes only to Slack's hosts, which is checked
 * before each redirect. An uploaded file is invisible until it is shared, so a failed upload means that nothing was sent.
 */
import { asUnavailable, downloadFile, followRedirects, mediaType, nothingSent, signalScope } from '@sluice/kit'
import { members, text, textAt } from '@sluice/kit/foreign-json'
import { AppError, type Attachment, type Media } from '@sluice/sdk'
import { isSlackUrl, type SlackApi } from './api.ts'

/** See `Channel.fetchMedia`. */
export function fetchMedia(api: SlackApi, attachment: Attachment, bytesMax: number, signal: AbortSignal): Promise<Media> {
  return downloadFile({
    provider: 'slack',
    bytesMax,
    signal,
    isAuthorized: true,
    async request(during) {
      const response = await followRedirects(await addressOf(api, attachment, signal), (url) => requestFile(api, url, during))
      // Slack answers a token that may not read files with its sign-in page and status 200.
      if (response.ok && mediaType(response.headers) === 'text/html' && attachment.mime !== 'text/html') {
        await response.body?.cancel()
        throw new AppError('forbidden', 'slack returned a web page instead of the file (does the app have the scope files:read?)')
      }
      return response
    },
  })
}

async function addressOf(api: SlackApi, { source }: Attachment, signal: AbortSignal): Promise<string> {
  if ('url' in source) return source.url
  if (!('id' in source)) throw new AppError('invalid_request', 'The attachment has neither an address nor a file id of slack')
  try {
    const { file } = await api.call('files.info', { file: source.id }, { signal })
    return textAt(members(file), 'url_private_download', 'url_private')
  } catch (error) {
    throw asUnavailable(error)
  }
}

async function requestFile(api: SlackApi, url: string, signal: AbortSignal): Promise<Response> {
  if (!isSlackUrl(url, api.url)) throw new AppError('forbidden', 'The file is not on a host of slack')
  return api.fetch(url, { headers: { authorization: api.authorization('bot_token') }, redirect: 'manual', signal })
}

export interface UploadedFile {
  readonly id: string
  readonly title: string
}

const UPLOAD_MS_MAX = 60_000

/** Throws `rate_limited` or `unavailable` if a repeat may succeed, and `invalid_request` or `forbidden` if it cannot. */
export async function uploadFiles(api: SlackApi, attachments: readonly Attachment[], signal: AbortSignal): Promise<UploadedFile[]> {
  const files: UploadedFile[] = []
  try {
    for (const attachment of attachments) files.push(await uploadFile(api, attachment, signal))
    return files
  } catch (error) {
    throw nothingSent(error)
  }
}

async function uploadFile(api: SlackApi, { name, source }: Attachment, signal: AbortSignal): Promise<UploadedFile> {
  if (!('bytes' in source) || source.bytes.length === 0) {
    throw new AppError('invalid_request', `slack accepts no empty file, and ${JSON.stringify(name)} has no content`)
  }
  const ticket = await api.call('files.getUploadURLExternal', { filename: name, length: source.bytes.length }, { signal })
  const [id, url] = [text(ticket.file_id), text(ticket.upload_url)]
  if (id === '' || !isSlackUrl(url, api.url)) throw new AppError('upstream', 'slack named an upload address that is not its own')
  const status = await upload(api.fetch, url, source.bytes, signal)
  if (status === 429 || status >= 500) throw new AppError('unavailable', `slack answered ${status} to the upload of a file`)
  if (status !== 200) throw new AppError('invalid_request', `slack answered ${status} to the upload of a file`)
  return { id, title: name }
}

/** Returns the status of the answer. Sends no token: the upload address contains its own credential. */
async function upload(fetch: SlackApi['fetch'], url: string, bytes: Uint8Array, signal: AbortSignal): Promise<number> {
  using limit = signalScope([signal], UPLOAD_MS_MAX)
  try {
    const response = await fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/octet-stream' },
      body: new Uint8Array(bytes),
      redirect: 'manual',
      signal: limit.signal,
    })
    await response.body?.cancel()
    return response.status
  } catch {
    throw new AppError('unavailable', 'The upload of a file to slack was interrupted')
  }
}
