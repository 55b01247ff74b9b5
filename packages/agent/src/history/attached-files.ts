/**
 * Adds the files of a message to the request of a model that can read them. A message names its attachments by their paths in the
 * workspace, and only these paths are stored with the conversation.
 */
import { type Logger, type MediaKind, type ModelMessage, namedAttachments, type Workspace } from '@sluice/sdk'

const TYPES: Readonly<Record<string, { readonly kind: MediaKind; readonly mediaType: string }>> = {
  png: { kind: 'image', mediaType: 'image/png' },
  jpg: { kind: 'image', mediaType: 'image/jpeg' },
  jpeg: { kind: 'image', mediaType: 'image/jpeg' },
  gif: { kind: 'image', mediaType: 'image/gif' },
  webp: { kind: 'image', mediaType: 'image/webp' },
  pdf: { kind: 'pdf', mediaType: 'application/pdf' },
  mp3: { kind: 'audio', mediaType: 'audio/mpeg' },
  wav: { kind: 'audio', mediaType: 'audio/wav' },
}

const endingOf = (path: string): string => path.slice(path.lastIndexOf('.') + 1)

const FILES_MAX = 8
/** The limit of one file. Providers refuse larger images. */
const FILE_BYTES_MAX = 5 * 1024 * 1024

type UserMessage = Extract<ModelMessage, { role: 'user' }>
type FilePart = Extract<UserMessage['content'][number], { type: 'file' }>

export interface AttachedFilesOptions {
  readonly text: string
  readonly kinds: readonly MediaKind[]
  readonly workspace: Pick<Workspace, 'read'>
  readonly log: Logger
}

/** Reads the files that a text names and whose kind the model takes. A file that cannot be read is left out; its path stays in the text. */
export async function attachedFiles({ text, kinds, workspace, log }: AttachedFilesOptions): Promise<FilePart[]> {
  if (kinds.length === 0 || !text.includes('attachments/')) return []
  const found = new Map(namedAttachments(text).map((path) => [path, TYPES[endingOf(path)]]))
  const wanted = [...found].flatMap(([path, type]) => (type && kinds.includes(type.kind) ? [{ path, mediaType: type.mediaType }] : []))
  const parts = wanted.slice(0, FILES_MAX).map(async ({ path, mediaType }): Promise<FilePart[]> => {
    try {
      const data = await workspace.read(path, { bytesMax: FILE_BYTES_MAX })
      return [{ type: 'file', mediaType, filename: path.slice(path.lastIndexOf('/') + 1), data: { type: 'data', data } }]
    } catch (error) {
      log.warn('attachment not sent to the model', { path, error })
      return []
    }
  })
  return (await Promise.all(parts)).flat()
}

/** Tells whether a text names a file of a kind that models read. */
export const namesReadableFile = (text: string): boolean =>
  text.includes('attachments/') && namedAttachments(text).some((path) => Object.hasOwn(TYPES, endingOf(path)))

/** Returns the prompt with the files after the text of the message that names them. */
export function withFiles(prompt: ModelMessage[], text: string, files: readonly FilePart[]): ModelMessage[] {
  if (files.length === 0) return prompt
  const at = prompt.findLastIndex(
    ({ role, content }) => role === 'user' && content.some((part) => part.type === 'text' && part.text === text),
  )
  return prompt.map((message, index) =>
    index === at && message.role === 'user' ? { ...message, content: [...message.content, ...files] } : message,
  )
}
