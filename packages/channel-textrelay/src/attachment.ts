/** The media of a message, as attachments to be fetched later. */

import { textAt } from '@sluice/kit/foreign-json'
import type { Attachment } from '@sluice/sdk'

const NAME_CHARS_MAX = 255

/** Undefined for a part that is no media, or has none to fetch. */
export function attachmentOf(part: unknown): Attachment | undefined {
  if (!['media', 'image'].includes(textAt(part, 'type'))) return undefined
  const url = textAt(part, 'url', 'value')
  if (url === '') return undefined
  const mime = textAt(part, 'mime_type', 'content_type').trim().toLowerCase()
  const kind = textAt(part, 'type') === 'image' ? 'image' : kindOf(mime)
  const name = textAt(part, 'filename').slice(0, NAME_CHARS_MAX) || kind
  return { kind, name, ...(mime && { mime }), source: { url } }
}

function kindOf(mime: string): Attachment['kind'] {
  const type = mime.split('/')[0]
  return type === 'image' || type === 'audio' || type === 'video' ? type : 'file'
}
