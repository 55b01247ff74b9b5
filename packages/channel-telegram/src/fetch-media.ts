/** Downloads files that users sent. The address of a file contains the token, so no error, log line or redirect may carry it. */
import { readUpTo, signalScope } from '@sluice/kit'
import { members, text } from '@sluice/kit/foreign-json'
import { AppError, type Attachment, type Media } from '@sluice/sdk'
import { type BotApi, refusalOf } from './bot-api.ts'

/** The API serves no larger file. */
const BYTES_MAX = 20 * 1024 * 1024
const TIMEOUT_MS = 60_000
/** A relative path without `.` and `..`. A local Bot API server may return paths of its own disk, which are rejected. */
const PATH = /^(?!.*(?:^|\/)\.\.?(?:\/|$))[^/\\][^\\]*$/

/** See `Channel.fetchMedia`. */
export async function fetchMedia(api: BotApi, { source }: Attachment, bytesMax: number, signal: AbortSignal): Promise<Media> {
  if (!('id' in source)) throw new AppError('invalid_request', 'The attachment has no file id of telegram')
  const path = await pathOf(api, source.id, signal)
  const most = Math.min(bytesMax, BYTES_MAX)
  using limit = signalScope([signal], TIMEOUT_MS)
  try {
    const response = await api.fetch(api.fileUrl(path), { redirect: 'manual', signal: limit.signal })
    if (!response.ok) {
      await response.body?.cancel()
      throw refused(response.status)
    }
    const bytes = await readUpTo(response, most)
    if (!bytes) throw tooLarge(most)
    return { bytes }
  } catch (error) {
    if (error instanceof AppError) throw error
    if (signal.aborted) throw new AppError('aborted', 'The download from telegram was aborted')
    throw new AppError(
      'unavailable',
      limit.timedOut ? `telegram did not send the whole file within ${TIMEOUT_MS / 1000} s` : 'The download from telegram broke off',
    )
  }
}

/** Every failure but a refusal becomes `unavailable`, because asking for the path can be repeated. */
async function pathOf(api: BotApi, file_id: string, signal: AbortSignal): Promise<string> {
  try {
    const path = text(members(await api.call('getFile', { file_id }, { signal })).file_path)
    if (!PATH.test(path)) throw new AppError('invalid_request', 'telegram returned a file path that cannot be downloaded')
    return path
  } catch (error) {
    if (!(error instanceof AppError)) throw error
    if (/file is too big/i.test(refusalOf(error)?.description ?? '')) throw tooLarge(BYTES_MAX)
    const isTemporary = ['upstream', 'upstream_timeout', 'rate_limited'].includes(error.code)
    throw isTemporary ? new AppError('unavailable', error.message) : error
  }
}

const tooLarge = (bytesMax: number): AppError => new AppError('too_large', `The attachment is larger than ${bytesMax} bytes`)

function refused(status: number): AppError {
  const isTemporary = status >= 500 || [401, 408, 429].includes(status)
  return new AppError(isTemporary ? 'unavailable' : 'invalid_request', `telegram answered ${status} when asked for an attachment`)
}
