/** The bytes of a file somebody sent. Its URL holds the token: no error, log line or redirect may carry it on. */

import { readUpTo, signalScope } from '@sluice/kit'
import { members, text } from '@sluice/kit/foreign-json'
import { AppError, type Attachment, type Media } from '@sluice/sdk'
import { type BotApi, refusalOf } from './bot-api.ts'

export interface FetchOptions {
  readonly bytesMax: number
  readonly signal: AbortSignal
}

/** The API hands out nothing larger. */
const BYTES_MAX = 20 * 1024 * 1024
const TIMEOUT_MS = 60_000
/** A path of the server's disk, or one that leads out of the bot's files, is none of ours. */
const PATH = /^(?!.*(?:^|\/)\.\.?(?:\/|$))[^/\\][^\\]*$/

/** See `Channel.fetchMedia`. */
export async function fetchMedia(api: BotApi, { source }: Attachment, { bytesMax, signal }: FetchOptions): Promise<Media> {
  if (!('id' in source)) throw new AppError('invalid_request', 'An attachment of telegram is known by its id')
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
    if (signal.aborted) throw new AppError('aborted', 'The download from telegram was cut off')
    throw new AppError(
      'unavailable',
      limit.timedOut ? `telegram sent no whole file within ${TIMEOUT_MS / 1000} s` : 'The download broke off',
    )
  }
}

/** Asking changes nothing, so that all but a refusal may be repeated. */
async function pathOf(api: BotApi, file_id: string, signal: AbortSignal): Promise<string> {
  try {
    const path = text(members(await api.call('getFile', { file_id }, { signal })).file_path)
    if (!PATH.test(path)) throw new AppError('invalid_request', 'telegram names no file that can be fetched')
    return path
  } catch (error) {
    if (!(error instanceof AppError)) throw error
    if (/file is too big/i.test(refusalOf(error)?.description ?? '')) throw tooLarge(BYTES_MAX)
    const mayPass = ['upstream', 'upstream_timeout', 'rate_limited'].includes(error.code)
    throw mayPass ? new AppError('unavailable', error.message) : error
  }
}

const tooLarge = (bytesMax: number): AppError => new AppError('too_large', `The attachment is larger than ${bytesMax} bytes`)

function refused(status: number): AppError {
  const mayPass = status >= 500 || [401, 408, 429].includes(status)
  return new AppError(mayPass ? 'unavailable' : 'invalid_request', `telegram answered ${status} when asked for an attachment`)
}
