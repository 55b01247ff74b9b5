/** Uploads files to Slack. A file is invisible until it is shared, so a failed upload means that nothing was sent. */
import { signalScope } from '@sluice/kit'
import { text } from '@sluice/kit/foreign-json'
import { AppError, type Attachment } from '@sluice/sdk'
import { isSlackUrl, type SlackApi } from './slack-api.ts'

export interface UploadedFile {
  readonly id: string
  readonly title: string
}

const TIMEOUT_MS = 60_000
/** Codes that mean "may have been sent" for a message. An upload with such a failure can be repeated. */
const UNCERTAIN = new Set(['upstream', 'upstream_timeout', 'aborted'])

/** Throws `rate_limited` or `unavailable` if a repeat may succeed, and `invalid_request` or `forbidden` if it cannot. */
export async function uploadFiles(api: SlackApi, attachments: readonly Attachment[], signal: AbortSignal): Promise<UploadedFile[]> {
  const files: UploadedFile[] = []
  try {
    for (const attachment of attachments) files.push(await uploadFile(api, attachment, signal))
    return files
  } catch (error) {
    if (!(error instanceof AppError) || !UNCERTAIN.has(error.code)) throw error
    throw new AppError('unavailable', error.message, error.retryAfterSecs === undefined ? {} : { retryAfterSecs: error.retryAfterSecs })
  }
}

async function uploadFile(api: SlackApi, { name, source }: Attachment, signal: AbortSignal): Promise<UploadedFile> {
  if (!('bytes' in source) || source.bytes.length === 0) {
    throw new AppError('invalid_request', `slack accepts no empty file, and ${JSON.stringify(name)} has no content`)
  }
  const ticket = await api.call('files.getUploadURLExternal', { filename: name, length: source.bytes.length }, { signal })
  const [id, url] = [text(ticket.file_id), text(ticket.upload_url)]
  if (id === '' || !isSlackUrl(url, api.url)) throw new AppError('upstream', 'slack named an upload address that is not its own')
  const status = await post(api.fetch, url, source.bytes, signal)
  if (status === 429 || status >= 500) throw new AppError('unavailable', `slack answered ${status} to the upload of a file`)
  if (status !== 200) throw new AppError('invalid_request', `slack answered ${status} to the upload of a file`)
  return { id, title: name }
}

/** Returns the status of the answer. Sends no token: the upload address contains its own credential. */
async function post(fetch: SlackApi['fetch'], url: string, bytes: Uint8Array, signal: AbortSignal): Promise<number> {
  using limit = signalScope([signal], TIMEOUT_MS)
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
