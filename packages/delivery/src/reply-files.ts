/** Files of a reply: the agent writes `[IMAGE:path]`, and the outbox reads the file from the workspace when it sends the reply. */

import { measure } from '@sluice/kit'
import {
  AppError,
  type Attachment,
  type Channel,
  errorText,
  type GatewayTexts,
  gatewayText,
  type ReplyFile,
  type Workspace,
} from '@sluice/sdk'

const KINDS: Readonly<Record<string, ReplyFile['kind']>> = {
  IMAGE: 'image',
  PHOTO: 'image',
  AUDIO: 'audio',
  VOICE: 'audio',
  VIDEO: 'video',
  DOCUMENT: 'file',
  FILE: 'file',
}
/** A path contains no bracket, so that the time is linear in the length of the text, however many markers have no end. */
const MARKER = /\[(IMAGE|PHOTO|AUDIO|VOICE|VIDEO|DOCUMENT|FILE):([^[\]\n]{1,1000})\]/gi

export interface MarkedText {
  /** The text of the reply without the markers of the files in `files`. */
  readonly text: string
  readonly files: readonly ReplyFile[]
}

/** Takes the markers of files out of a text. Markers of URLs, and markers beyond the number of files of one message, stay in the text. */
export function takeFiles(text: string, { attachments }: Channel['limits']): MarkedText {
  if (!attachments) return { text, files: [] }
  const files: ReplyFile[] = []
  const rest = text.replace(MARKER, (marker, name: string, inside: string) => {
    const kind = KINDS[name.toUpperCase()]
    const path = inside.trim()
    if (!kind || path === '' || /^[a-z][a-z0-9+.-]*:/i.test(path) || files.length >= attachments.count) return marker
    files.push({ kind, path })
    return ''
  })
  return files.length === 0 ? { text, files } : { text: rest.replace(/\n{3,}/g, '\n\n').trim(), files }
}

export interface LoadedFiles {
  readonly attachments: readonly Attachment[]
  /** A line for each file that cannot be sent. */
  readonly notes: readonly string[]
}

export interface LoadOptions {
  readonly workspace: Workspace | undefined
  readonly bytesMax: number
  readonly texts?: GatewayTexts
}

/** Reads the files from the workspace, and from nowhere else. Without one, no file is attached. */
export async function loadFiles(files: readonly ReplyFile[], { workspace, bytesMax, texts = {} }: LoadOptions): Promise<LoadedFiles> {
  const attachments: Attachment[] = []
  const notes: string[] = []
  for (const { kind, path } of files) {
    try {
      if (!workspace) throw new AppError('unavailable', `the agent of '${path}' is not configured`)
      const bytes = await workspace.read(path, { bytesMax })
      if (bytes.length === 0) notes.push(gatewayText('not_attached_empty', texts, { path }))
      else attachments.push({ kind, name: path.slice(path.lastIndexOf('/') + 1), source: { bytes } })
    } catch (error) {
      notes.push(gatewayText('not_attached', texts, { reason: errorText(error) }))
    }
  }
  return { attachments, notes }
}

/** Returns the text with the notes below it, or with their number if the message has no room for all. */
export function withNotes(text: string, notes: readonly string[], limits: Channel['limits'], texts: GatewayTexts = {}): string {
  if (notes.length === 0) return text
  const forms = [notes, [gatewayText('not_attached_many', texts, { count: notes.length })]].map((lines) =>
    [text, ...lines].filter((line) => line !== '').join('\n'),
  )
  return forms.find((form) => measure(form, limits.unit) <= limits.text) ?? text
}
