/** Uploads files: as a photo, recording or video where the platform can show one, and as a document otherwise. */
import type { InlineKeyboardMarkup } from '@grammyjs/types'
import { AppError, type Attachment } from '@sluice/sdk'
import { type BotApi, refusalOf } from './bot-api.ts'

/** The destination of a message, in the parameters that all sending methods share. */
export interface ChatParams {
  readonly chat_id: string
  readonly message_thread_id?: number
  readonly reply_parameters?: { readonly message_id: number; readonly allow_sending_without_reply: true }
  readonly reply_markup?: InlineKeyboardMarkup
}

export const FILE_BYTES_MAX = 50 * 1024 * 1024
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

/** Sends one file and returns the message as the API shows it. Throws `invalid_request` for an attachment without bytes. */
export async function upload(
  api: BotApi,
  attachment: Attachment,
  caption: string,
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

function formOf(field: Field, file: File, caption: string, chat: ChatParams): FormData {
  const form = new FormData()
  for (const [name, value] of Object.entries({ ...chat, ...(caption !== '' && { caption }) })) {
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
