/** Files that came with a message. */

import { list, members, text } from '@sluice/kit/foreign-json'
import type { Attachment } from '@sluice/sdk'

const EXTENSIONS: readonly (readonly [Attachment['kind'], RegExp])[] = [
  ['image', /\.(?:png|jpe?g|gif|bmp|webp|heic|tiff?|svg)$/i],
  ['audio', /\.(?:flac|mp3|mpga|m4a|ogg|oga|opus|wav)$/i],
  ['video', /\.(?:mp4|mkv|avi|mov|wmv|flv|webm)$/i],
]

export const parseAttachments = (data: unknown): Attachment[] =>
  list(data)
    .map(members)
    .filter(({ url }) => text(url) !== '')
    .map(({ url, filename, content_type }) => {
      const name = text(filename) || 'unnamed'
      const mime = text(content_type).split(';')[0]?.trim().toLowerCase()
      return { kind: kindOf(name, mime ?? ''), name, ...(mime && { mime }), source: { url: text(url) } }
    })

function kindOf(name: string, mime: string): Attachment['kind'] {
  const family = mime.split('/')[0]
  if (family === 'image' || family === 'audio' || family === 'video') return family
  return mime === '' ? (EXTENSIONS.find(([, extension]) => extension.test(name))?.[0] ?? 'file') : 'file'
}
