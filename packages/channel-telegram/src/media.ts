/**
 * Files: downloads the files of users, and uploads the files of replies as a photo, recording or video where the platform can show
 * one, and as a document otherwise. The address of a file contains the token, so no error, log line or redirect may carry it.
 */
import type { InlineKeyboardMarkup } from '@grammyjs/types'
import { asUnavailable, downloadFile } from '@sluice/kit'
import { members, text } from '@sluice/kit/foreign-json'
import { AppError, type Attachment, type Media } from '@sluice/sdk'
import { type BotApi, refusalOf } from './api.ts'

/** The API serves no larger file. */
const DOWNLOAD_BYTES_MAX = 20 * 1024 * 1024
/** A relative path without `.` and `..`. A local Bot API server may return paths of its own disk, which are rejected. */
const PATH = /^(?!.*(?:^|\/)\.\.?(?:\/|$))[^/\\][^\\]*$/

/** See `Channel.fetchMedia`. */
export async function fetchMedia(api: BotApi, { source }: Attachment, bytesMax: number, signal: AbortSignal): Promise<Media> {
  if (!('id' in source)) throw new AppError('invalid_request', 'The attachment has no file id of telegram')
  const path = await pathOf(api, source.id, signal)
  const { bytes } = await downloadFile({
    provider: 'telegram',
    bytesMax: Math.min(bytesMax, DOWNLOAD_BYTES_MAX),
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
      throw new AppError('too_large', `The attachment is larger than ${DOWNLOAD_BYTES_MAX} bytes`)
    }
    throw asUnavailable(error)
  }
}

/** The destination of a message, in the parameters that all sending methods share. */
export interface ChatParams {
  readonly chat_id: string
  readonly message_thread_id?: number
  readonly reply_parameters?: { readonly message_id: number; readonly allow_sending_without_reply: true }
  readonly reply_markup?: InlineKeyboardMarkup
}

/** The largest file that the API accepts. */
export const UPLOAD_BYTES_MAX = 50 * 1024 * 1024
const PHOTO_BYTES_MAX = 10 * 1024 * 1024
const UPLOAD_MS_MAX = 55_000

const METHODS = {
  photo: 'sendPhoto',
  audio: 'sendAudio',
  voice: 'sendVoice',
  video: 'sendVideo',
  document: 'sendDocument',
} as const
type Field = keyof typeof METHODS

/** The text under a file; empty for none. */
export interface Caption {
  readonly text: string
  readonly entities?: readonly object[]
}

/** Sends one file and returns the message as the API shows it. Throws `invalid_request` for an attachment without bytes. */
export async function upload(
  api: BotApi,
  attachment: Attachment,
  caption: Caption,
  chat: ChatParams,
  signal: AbortSignal,
): Promise<unknown> {
  const { name, mime, source } = attachment
  if (!('bytes' in source)) throw new AppError('invalid_request', `The attachment ${JSON.stringify(name)} has no bytes`)
  const file = new File([new Uint8Array(source.bytes)], name, { type: mime ?? '' })
  const post = (field: Field) => api.call(METHODS[field], formOf(field, file, caption, chat), { signal, timeoutMs: UPLOAD_MS_MAX })
  const field = fieldOf(attachment, source.bytes.length)
  try {
    return await post(field)
  } catch (error) {
    // The platform refuses pictures of extreme proportions, and files whose content does not match their name.
    if (field === 'document' || refusalOf(error)?.code !== 400 || refusalOf(error)?.migratedTo !== undefined) throw error
    return post('document')
  }
}

function formOf(field: Field, file: File, { text, entities }: Caption, chat: ChatParams): FormData {
  const form = new FormData()
  for (const [name, value] of Object.entries({
    ...chat,
    ...(text !== '' && { caption: text, ...(entities && { caption_entities: entities }) }),
  })) {
    form.set(name, typeof value === 'object' ? JSON.stringify(value) : String(value))
  }
  form.set(field, file)
  return form
}

/** Chooses by the extension of the file name, because attachments need not have a media type. */
function fieldOf({ kind, name }: Attachment, bytes: number): Field {
  const extension = /\.(\w+)$/.exec(name)?.[1]?.toLowerCase() ?? ''
  if (kind === 'image' && ['jpg', 'jpeg', 'png', 'webp'].includes(extension) && bytes <= PHOTO_BYTES_MAX) return 'photo'
  if (kind === 'audio' && ['mp3', 'm4a'].includes(extension)) return 'audio'
  if (kind === 'audio' && ['ogg', 'oga', 'opus'].includes(extension)) return 'voice'
  return kind === 'video' && extension === 'mp4' ? 'video' : 'document'
}
