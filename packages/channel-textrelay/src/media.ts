/** Attachments: finds them in a message and fetches their bytes. */
import { attachmentKind, downloadFile } from '@sluice/kit'
import { textAt } from '@sluice/kit/foreign-json'
import { AppError, type Attachment, type Host, type Media } from '@sluice/sdk'

const NAME_CHARS_MAX = 255

/** Returns the attachment in a part of a message; undefined for a part of another type or without a URL. */
export function attachmentOf(part: unknown): Attachment | undefined {
  if (!['media', 'image'].includes(textAt(part, 'type'))) return undefined
  const url = textAt(part, 'url', 'value')
  if (url === '') return undefined
  const mime = textAt(part, 'mime_type', 'content_type').trim().toLowerCase()
  const kind = textAt(part, 'type') === 'image' ? 'image' : attachmentKind(mime)
  const name = textAt(part, 'filename').slice(0, NAME_CHARS_MAX) || kind
  return { kind, name, ...(mime && { mime }), source: { url } }
}

/**
 * Implements `Channel.fetchMedia`. The sender of the message controls the URL, so the request carries no token and goes only
 * to public addresses. The platform keeps the file for one hour.
 */
export async function fetchMedia({ publicFetch }: Host, { source }: Attachment, bytesMax: number, signal: AbortSignal): Promise<Media> {
  if (!('url' in source)) throw new AppError('invalid_request', 'The attachment has no URL')
  return downloadFile({
    provider: 'textrelay',
    request: (during) => publicFetch(source.url, { signal: during, responseBytesMax: bytesMax }),
    isAuthorized: false,
    bytesMax,
    signal,
  })
}
