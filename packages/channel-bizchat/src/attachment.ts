/** The media of a message, as an attachment to be fetched later. */

import { textAt } from '@sluice/kit/foreign-json'
import type { Attachment } from '@sluice/sdk'

const NAME_CHARS_MAX = 255
const EXTENSION = /.\.[a-z0-9]{1,8}$/i

/** By `type`: what it is to us, and its name where the URL has none. */
const MEDIA: Readonly<Record<string, readonly [kind: Attachment['kind'], name: string]>> = {
  image: ['image', 'image'],
  sticker: ['image', 'sticker'],
  audio: ['audio', 'audio.ogg'],
  voice: ['audio', 'voice.ogg'],
  video: ['video', 'video'],
  document: ['file', 'document'],
}

/**
 * Undefined for a message of another type, or without a URL. The `text` of a document without a caption is the name its
 * sender's file has; the URL names the provider's copy.
 */
export function attachmentOf(event: unknown, type: string, text: string): Attachment | undefined {
  const media = Object.hasOwn(MEDIA, type) ? MEDIA[type] : undefined
  const url = textAt(event, 'data', 'mediaUrl', 'media_url').trim()
  if (!media || url === '') return undefined
  const [kind, name] = media
  const given = type === 'document' ? namedLike(text.trim(), fileName(url)) : undefined
  return { kind, name: given ?? fileName(url) ?? name, source: { url } }
}

/** The text, if it is a plain file name with the extension of the stored file. */
function namedLike(text: string, stored: string | undefined): string | undefined {
  const isName = text.length <= NAME_CHARS_MAX && EXTENSION.test(text) && !/[\n\r/\\]/.test(text)
  return isName && (stored === undefined || extensionOf(stored) === extensionOf(text)) ? text : undefined
}

const extensionOf = (name: string): string => name.slice(name.lastIndexOf('.') + 1).toLowerCase()

/** The last segment of the file the URL names, if it has an extension, by which its format is known. */
function fileName(text: string): string | undefined {
  const url = URL.parse(text)
  const path = url?.searchParams.get('fileName') ?? url?.pathname ?? ''
  const name = path.slice(Math.max(path.lastIndexOf('/'), path.lastIndexOf('\\')) + 1).slice(-NAME_CHARS_MAX)
  return EXTENSION.test(name) ? name : undefined
}
