/** The media of a message, as an attachment to be fetched later. */
import type { Attachment } from '@sluice/sdk'
import { textAt } from '@sluice/sdk/foreign-json'

const NAME_CHARS_MAX = 255

/** By `type`: what it is to us, and its name where the URL has none. */
const MEDIA: Readonly<Record<string, readonly [kind: Attachment['kind'], name: string]>> = {
  image: ['image', 'image'],
  sticker: ['image', 'sticker'],
  audio: ['audio', 'audio.ogg'],
  voice: ['audio', 'voice.ogg'],
  video: ['video', 'video'],
  document: ['file', 'document'],
}

/** Undefined for a message of another type, or without a URL. */
export function attachmentOf(event: unknown, type: string): Attachment | undefined {
  const media = Object.hasOwn(MEDIA, type) ? MEDIA[type] : undefined
  const url = textAt(event, 'data', 'mediaUrl', 'media_url').trim()
  if (!media || url === '') return undefined
  const [kind, name] = media
  return { kind, name: fileName(url) ?? name, source: { url } }
}

/** The last segment of the file the URL names, if it has an extension, by which its format is known. */
function fileName(text: string): string | undefined {
  const url = URL.parse(text)
  const path = url?.searchParams.get('fileName') ?? url?.pathname ?? ''
  const name = path.slice(Math.max(path.lastIndexOf('/'), path.lastIndexOf('\\')) + 1).slice(-NAME_CHARS_MAX)
  return /.\.[a-z0-9]{1,8}$/i.test(name) ? name : undefined
}
