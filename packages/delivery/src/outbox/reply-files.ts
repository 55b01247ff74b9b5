/** Files of a reply: the agent writes `[IMAGE:path]`, and the outbox reads the file from the workspace when it sends the reply. */

import { measure } from '@sluice/kit'
import {
  AppError,
  type Attachment,
  type Channel,
  errorText,
  type GatewayTexts,
  gatewayText,
  type MarkedFile,
  type ReplyFile,
  replaceFileMarkers,
  type Workspace,
} from '@sluice/sdk'

export interface MarkedText {
  /** The text of the reply without the markers of the files in `files`. */
  readonly text: string
  readonly files: readonly ReplyFile[]
}

/**
 * Takes the markers of files out of a text. Markers of URLs, and markers beyond the number of files of one message, stay in the text. `marked` says
 * which files are attached.
 */
export function takeFiles(text: string, marked: readonly MarkedFile[], { attachments }: Channel['limits']): MarkedText {
  if (!attachments) return { text, files: [] }
  const files: ReplyFile[] = []
  const rest = replaceFileMarkers(text, (file) => {
    if (files.length >= attachments.count) return undefined
    const { refusal } = marked.find(({ path }) => path === file.path) ?? { refusal: `'${file.path}' was not judged` }
    files.push(refusal === undefined ? file : { ...file, refusal })
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
  for (const { kind, path, refusal } of files) {
    try {
      if (refusal !== undefined) throw new AppError('forbidden', refusal)
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
