/** Reads the text and the attachments of a message by its type, and puts its context under the text. */

import { type Members, members, text } from '@sluice/kit/foreign-json'
import type { Attachment, Inbound } from '@sluice/sdk'
import { contextText } from './context-text.ts'
import { contactsText, locationText, orderText } from './plain-text.ts'

type Content = Pick<Inbound, 'text' | 'attachments'>

/** Returns undefined for unknown types and for those that need no answer, such as reactions. */
export function contentOf(message: Members): Content | undefined {
  const content = ownContent(message)
  if (!content) return undefined
  const lines = [content.text, ...contextText(message, content.text)]
  return { ...content, text: lines.filter((line) => line !== '').join('\n') }
}

function ownContent(message: Members): Content | undefined {
  const type = text(message.type)
  switch (type) {
    case 'text':
      return said(text(members(message.text).body))
    case 'button':
      return said(text(members(message.button).text))
    case 'interactive':
      return said(chosen(members(message.interactive)))
    case 'location':
      return said(locationText(members(message.location)))
    case 'contacts':
      return said(contactsText(message.contacts))
    case 'order':
      return said(orderText(members(message.order)))
    case 'image':
    case 'sticker':
    case 'audio':
    case 'voice':
    case 'video':
    case 'document':
      return media(type, members(message[type]))
    default:
      return undefined
  }
}

const said = (words: string): Content | undefined => (words.trim() === '' ? undefined : { text: words })

/** The title of the button or row that was picked. */
const chosen = ({ button_reply, list_reply }: Members): string => text(members(button_reply ?? list_reply).title)

const KINDS = {
  image: 'image',
  sticker: 'image',
  audio: 'audio',
  voice: 'audio',
  video: 'video',
  document: 'file',
} as const satisfies Record<string, Attachment['kind']>

function media(type: keyof typeof KINDS, part: Members): Content | undefined {
  const id = text(part.id)
  if (id === '') return undefined
  const mime = text(part.mime_type)
  const [, family, format] = /^(\w+)\/(\w+)/.exec(mime) ?? []
  const stem = part.voice === true ? 'voice' : type
  const attachment: Attachment = {
    // Pictures and recordings may be sent as documents.
    kind: family === 'image' || family === 'audio' || family === 'video' ? family : KINDS[type],
    name: text(part.filename) || (format ? `${stem}.${format}` : stem),
    ...(mime && { mime }),
    source: { id },
  }
  return { text: text(part.caption), attachments: [attachment] }
}
