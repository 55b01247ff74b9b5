/** The text of a message, with what its placeholders stand for; files among them become attachments. */

import { type Members, members, text } from '@sluice/kit/foreign-json'
import type { Attachment } from '@sluice/sdk'
import { idText } from './id-text.ts'

export interface RichText {
  readonly text: string
  readonly attachments: readonly Attachment[]
}

/** `parameters` is an object by placeholder; servers write none as an empty list. */
export function richText(message: string, parameters: unknown): RichText {
  const known = members(parameters)
  const filled = message.replace(/\{([\w-]+)\}/g, (placeholder, key: string) => {
    if (!Object.hasOwn(known, key)) return placeholder
    const parameter = members(known[key])
    return isFile(parameter) ? '' : text(parameter.name) || placeholder
  })
  const attachments = Object.values(known).map(members).filter(isFile).map(attachmentOf)
  return { text: filled.trim(), attachments }
}

const isFile = ({ type, id, link }: Members): boolean => type === 'file' && (text(link) || idText(id)) !== ''

function attachmentOf({ id, name, mimetype, link }: Members): Attachment {
  const mime = text(mimetype)
  const url = text(link)
  return {
    kind: kindOf(mime),
    name: text(name) || 'file',
    ...(mime !== '' && { mime }),
    source: url === '' ? { id: idText(id) } : { url },
  }
}

function kindOf(mime: string): Attachment['kind'] {
  const [kind] = mime.split('/')
  return kind === 'image' || kind === 'audio' || kind === 'video' ? kind : 'file'
}
