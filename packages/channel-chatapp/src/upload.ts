/**
 * Uploads files and decides as what they are sent: what WhatsApp cannot show is sent as a document. Source of types and sizes:
 * https://developers.facebook.com/documentation/business-messaging/whatsapp/business-phone-numbers/media#supported-media-types
 */
import { asUnavailable, mediaTypeOfName, pathSegment } from '@sluice/kit'
import { members, text as textOf } from '@sluice/kit/foreign-json'
import { AppError, type Attachment } from '@sluice/sdk'
import type { Graph } from './api.ts'

export interface Upload {
  readonly type: 'image' | 'audio' | 'video' | 'document'
  /** The platform's id of the file. */
  readonly id: string
  readonly name: string
  readonly hasCaption: boolean
}

export interface UploadOptions {
  readonly graph: Graph
  /** The platform's id of our number. */
  readonly account: string
}

const MIB = 1_048_576
/** The types that WhatsApp shows as a picture, a recording or a video. */
const SHOWN = [
  { type: 'image', mimes: ['image/jpeg', 'image/png'], bytesMax: 5 * MIB },
  { type: 'audio', mimes: ['audio/aac', 'audio/amr', 'audio/mpeg', 'audio/mp4', 'audio/ogg'], bytesMax: 16 * MIB },
  { type: 'video', mimes: ['video/mp4', 'video/3gpp'], bytesMax: 16 * MIB },
] as const
const NAME_CHARS_MAX = 240

/** Throws `unavailable` after a failure that may pass, because an upload that is repeated does no harm. */
export async function uploadFile({ graph, account }: UploadOptions, attachment: Attachment, signal: AbortSignal): Promise<Upload> {
  const { source } = attachment
  if (!('bytes' in source)) throw new AppError('invalid_request', 'The attachment has no bytes')
  const name = attachment.name.slice(-NAME_CHARS_MAX) || 'file'
  const mime = attachment.mime ?? mediaTypeOfName(name) ?? 'application/octet-stream'
  const shown = SHOWN.find(({ mimes, bytesMax }) => (mimes as readonly string[]).includes(mime) && source.bytes.length <= bytesMax)
  const form = new FormData()
  form.set('messaging_product', 'whatsapp')
  form.set('type', mime)
  form.set('file', new File([new Uint8Array(source.bytes)], name, { type: mime }))
  try {
    const answer = await graph.call({ method: 'POST', path: `${pathSegment(account)}/media`, body: form, signal })
    const id = textOf(members(answer).id)
    if (id === '') throw new AppError('upstream', 'chatapp accepted the file but returned no id for it')
    return { type: shown?.type ?? 'document', id, name, hasCaption: shown?.type !== 'audio' }
  } catch (error) {
    throw asUnavailable(error)
  }
}
