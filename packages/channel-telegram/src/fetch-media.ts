/** Downloads files that users sent. The address of a file contains the token, so no error, log line or redirect may carry it. */
import { asUnavailable, downloadFile } from '@sluice/kit'
import { members, text } from '@sluice/kit/foreign-json'
import { AppError, type Attachment, type Media } from '@sluice/sdk'
import { type BotApi, refusalOf } from './bot-api.ts'

/** The API serves no larger file. */
const BYTES_MAX = 20 * 1024 * 1024
/** A relative path without `.` and `..`. A local Bot API server may return paths of its own disk, which are rejected. */
const PATH = /^(?!.*(?:^|\/)\.\.?(?:\/|$))[^/\\][^\\]*$/

/** See `Channel.fetchMedia`. */
export async function fetchMedia(api: BotApi, { source }: Attachment, bytesMax: number, signal: AbortSignal): Promise<Media> {
  if (!('id' in source)) throw new AppError('invalid_request', 'The attachment has no file id of telegram')
  const path = await pathOf(api, source.id, signal)
  const { bytes } = await downloadFile({
    provider: 'telegram',
    bytesMax: Math.min(bytesMax, BYTES_MAX),
    signal,
    isAuthorized: true,
    request: (during) => api.fetch(api.fileUrl(path), { redirect: 'manual', signal: during }),
  })
  // The media type in the answer is the same for every file.
  return { bytes }
}

async function pathOf(api: BotApi, file_id: string, signal: AbortSignal): Promise<string> {
  try {
    const path = text(members(await api.call('getFile', { file_id }, { signal })).file_path)
    if (!PATH.test(path)) throw new AppError('invalid_request', 'telegram returned a file path that cannot be downloaded')
    return path
  } catch (error) {
    if (/file is too big/i.test(refusalOf(error)?.description ?? '')) {
      throw new AppError('too_large', `The attachment is larger than ${BYTES_MAX} bytes`)
    }
    throw asUnavailable(error)
  }
}
