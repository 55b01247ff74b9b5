/** The files of a message. */

import { list, type Members, members, text, textAt } from '@sluice/kit/foreign-json'
import type { Attachment } from '@sluice/sdk'

/** More than Slack lets anybody attach to one message. */
const FILES_MAX = 20
/** Deleted, or beyond what the workspace's plan shows. */
const GONE = ['tombstone', 'hidden_by_limit']

export const attachmentsOf = (message: Members): readonly Attachment[] => list(message.files).slice(0, FILES_MAX).flatMap(attachmentOf)

function attachmentOf(value: unknown): Attachment[] {
  const file = members(value)
  const id = text(file.id)
  if (id === '' || GONE.includes(text(file.mode))) return []
  const mime = text(file.mimetype)
  const url = textAt(file, 'url_private_download', 'url_private')
  // Of a file shared from another workspace, the event tells the id alone.
  const source = url === '' ? { id } : { url }
  return [{ kind: kindOf(mime), name: textAt(file, 'name', 'title') || id, ...(mime !== '' && { mime }), source }]
}

function kindOf(mime: string): Attachment['kind'] {
  const [type] = mime.split('/')
  return type === 'image' || type === 'audio' || type === 'video' ? type : 'file'
}
