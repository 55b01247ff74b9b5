/** Replaces the placeholders in the text of a message by names, and returns files among them as attachments. */
import { attachmentKind } from '@sluice/kit'
import { type Members, members, text } from '@sluice/kit/foreign-json'
import type { Attachment } from '@sluice/sdk'
import { idText } from './server.ts'

export interface RichText {
  readonly text: string
  readonly attachments: readonly Attachment[]
}

/** `parameters` is an object with the placeholders as keys. A server without placeholders sends an empty list. */
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
    kind: attachmentKind(mime),
    name: text(name) || 'file',
    ...(mime !== '' && { mime }),
    source: url === '' ? { id: idText(id) } : { url },
  }
}
