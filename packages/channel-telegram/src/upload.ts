/** Files that go out: shown as what they are where the platform can, as documents otherwise. */
import { AppError, type Attachment } from '@sluice/sdk'
import { type BotApi, refusalOf } from './bot-api.ts'
import type { ChatParams } from './send-message.ts'

export interface Upload {
  readonly attachment: Attachment
  readonly caption: string
  readonly chat: ChatParams
  readonly signal: AbortSignal
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

/** Resolves to the message as the API shows it. */
export async function upload(api: BotApi, { attachment, caption, chat, signal }: Upload): Promise<unknown> {
  if (!('bytes' in attachment.source)) throw new AppError('invalid_request', 'Only an attachment with its bytes can be sent')
  const { bytes } = attachment.source
  const post = (field: Field) =>
    api.call(METHODS[field], formOf(field, { attachment, bytes, caption, chat }), { signal, timeoutMs: UPLOAD_MS_MAX })
  const field = fieldOf(attachment, bytes.length)
  try {
    return await post(field)
  } catch (error) {
    // A picture may be too wide, and any file other than its name says.
    if (field === 'document' || refusalOf(error)?.code !== 400 || refusalOf(error)?.migratedTo !== undefined) throw error
    return post('document')
  }
}

function formOf(field: Field, { attachment, bytes, caption, chat }: Omit<Upload, 'signal'> & { readonly bytes: Uint8Array }): FormData {
  const form = new FormData()
  for (const [name, value] of Object.entries({ ...chat, ...(caption !== '' && { caption }) })) {
    form.set(name, typeof value === 'object' ? JSON.stringify(value) : String(value))
  }
  form.set(field, new File([new Uint8Array(bytes)], attachment.name, { type: attachment.mime ?? '' }))
  return form
}

/** By the ending of its name, which is what there is to go by. */
function fieldOf({ kind, name }: Attachment, bytes: number): Field {
  const ending = /\.(\w+)$/.exec(name)?.[1]?.toLowerCase() ?? ''
  if (kind === 'image' && ['jpg', 'jpeg', 'png', 'webp'].includes(ending) && bytes <= PHOTO_BYTES_MAX) return 'photo'
  if (kind === 'audio' && ['mp3', 'm4a'].includes(ending)) return 'audio'
  if (kind === 'audio' && ['ogg', 'oga', 'opus'].includes(ending)) return 'voice'
  return kind === 'video' && ending === 'mp4' ? 'video' : 'document'
}
