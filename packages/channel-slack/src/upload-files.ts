/** Files on their way into a conversation: nobody sees them until they are shared, so whatever fails before was not sent. */

import { signalScope } from '@sluice/kit'
import { text } from '@sluice/kit/foreign-json'
import { AppError, type Attachment } from '@sluice/sdk'
import type { Outside } from './send-message.ts'
import { isSlackUrl } from './slack-host.ts'

export interface UploadedFile {
  readonly id: string
  readonly title: string
}

const TIMEOUT_MS = 60_000
/** What may have been done elsewhere was not done here. */
const UNCERTAIN = new Set(['upstream', 'upstream_timeout', 'aborted'])

/** Throws `AppError`: `rate_limited` and `unavailable`, or what never will be sent. */
export async function uploadFiles(outside: Outside, attachments: readonly Attachment[], signal: AbortSignal): Promise<UploadedFile[]> {
  const files: UploadedFile[] = []
  try {
    for (const attachment of attachments) files.push(await uploadFile(outside, attachment, signal))
    return files
  } catch (error) {
    if (!(error instanceof AppError) || !UNCERTAIN.has(error.code)) throw error
    throw new AppError('unavailable', error.message, error.retryAfterSecs === undefined ? {} : { retryAfterSecs: error.retryAfterSecs })
  }
}

async function uploadFile({ fetch, api }: Outside, { name, source }: Attachment, signal: AbortSignal): Promise<UploadedFile> {
  if (!('bytes' in source) || source.bytes.length === 0) throw new AppError('invalid_request', 'slack takes no file without content')
  const ticket = await api.call('files.getUploadURLExternal', { filename: name, length: source.bytes.length }, { signal })
  const [id, url] = [text(ticket.file_id), text(ticket.upload_url)]
  if (id === '' || !isSlackUrl(url, api.url)) throw new AppError('upstream', 'slack named no address of its own to upload to')
  const status = await post(fetch, url, source.bytes, signal)
  if (status === 429 || status >= 500) throw new AppError('unavailable', `slack answered ${status} to the upload of a file`)
  if (status !== 200) throw new AppError('invalid_request', `slack answered ${status} to the upload of a file`)
  return { id, title: name }
}

/** The address is its own credential. */
async function post(fetch: Outside['fetch'], url: string, bytes: Uint8Array, signal: AbortSignal): Promise<number> {
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
    throw new AppError('unavailable', 'The upload of a file to slack broke off')
  }
}
