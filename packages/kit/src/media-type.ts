/** Media types (RFC 2046) of attachments. */
import type { Attachment } from '@sluice/sdk/webhook'

/** Returns the kind of an attachment with the media type `mime`; `file` for types that are not images, audio or video. */
export function attachmentKind(mime: string): Attachment['kind'] {
  const [family] = mime.trim().toLowerCase().split('/')
  return family === 'image' || family === 'audio' || family === 'video' ? family : 'file'
}

/** Returns the media type in a `Content-Type` header, in lower case and without parameters; undefined without one. */
export const mediaType = (headers: Headers): string | undefined =>
  headers.get('content-type')?.split(';')[0]?.trim().toLowerCase() || undefined
