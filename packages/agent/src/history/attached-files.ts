/**
 * Shows the files of a conversation to a model that can read them. A message names its attachments by their paths in the workspace, and
 * only these paths are stored with the conversation.
 */
import { type Logger, type MediaKind, type ModelMessage, namedAttachments, usedFilesIn, type Workspace } from '@sluice/sdk'

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
/** The limit of all files of a request. */
const ALL_BYTES_MAX = 8 * 1024 * 1024
/** The limit of one file. Providers refuse larger images. */
const FILE_BYTES_MAX = 5 * 1024 * 1024

export type FilePart = Extract<Extract<ModelMessage, { role: 'user' }>['content'][number], { type: 'file' }>

export interface ShownFiles {
  readonly prompt: ModelMessage[]
  /** The paths of the files that the prompt has. */
  readonly paths: readonly string[]
}

export interface ShowFilesOptions {
  readonly kinds: readonly MediaKind[]
  readonly workspace: Pick<Workspace, 'read'>
  readonly log: Logger
  /** The files that were read in this turn; undefined for one that could not be read. */
  readonly read: Map<string, FilePart | undefined>
  /** Tells whether the model has refused a request with this file. */
  isRefused(path: string): boolean
}

/**
 * Adds to each message the files that it names, and to results the pictures that their calls opened or wrote, so that they stay in the
 * conversation. A file that cannot be read is left out; its path stays in the text. Beyond the limits the newest files are shown.
 */
export async function showFiles(prompt: ModelMessage[], options: ShowFilesOptions): Promise<ShownFiles> {
  const { kinds, read, isRefused } = options
  if (kinds.length === 0) return { prompt, paths: [] }
  const named = prompt.map((message) => filesOf(message, kinds).filter((path) => !isRefused(path)))
  const wanted = [...new Set(named.flat())]
  if (wanted.length === 0) return { prompt, paths: [] }
  const newest = wanted.slice(-FILES_MAX)
  await Promise.all(newest.map((path) => (read.has(path) ? undefined : readFile(path, options))))
  const shown = new Set<string>()
  let bytes = 0
  for (const path of newest.toReversed()) {
    const part = read.get(path)
    bytes += part ? bytesOf(part) : 0
    if (part && bytes <= ALL_BYTES_MAX) shown.add(path)
  }
  const added = new Set<string>()
  const parts = (at: number): FilePart[] =>
    (named[at] ?? []).flatMap((path) => {
      const part = shown.has(path) && !added.has(path) ? read.get(path) : undefined
      added.add(path)
      return part ?? []
    })
  return {
    prompt: prompt.flatMap((message, at): ModelMessage[] => {
      const files = parts(at)
      if (files.length === 0) return [message]
      if (message.role === 'user') return [{ ...message, content: [...message.content, ...files] }]
      // Not every provider takes files in results.
      return [message, { role: 'user', content: [{ type: 'text', text: PICTURES_OF_RESULTS }, ...files] }]
    }),
    paths: [...shown],
  }
}

const PICTURES_OF_RESULTS = '(The pictures that the tools above have opened or written.)'

/** Tells whether the files of a conversation are few and small enough to be shown. `sizes` are the known ones, in bytes. */
export function filesFit(
  messages: readonly ModelMessage[],
  kinds: readonly MediaKind[],
  sizes: { get(path: string): number | undefined },
): boolean {
  const paths = [...new Set(messages.flatMap((message) => filesOf(message, kinds)))]
  return paths.length <= FILES_MAX && paths.reduce((bytes, path) => bytes + (sizes.get(path) ?? 0), 0) <= ALL_BYTES_MAX
}

export const bytesOf = ({ data }: FilePart): number => (data.type === 'data' && data.data instanceof Uint8Array ? data.data.length : 0)

/** The paths of the files that a message brings to a model which reads these kinds. */
function filesOf(message: ModelMessage, kinds: readonly MediaKind[]): string[] {
  const isRead = (path: string): boolean => kinds.some((kind) => TYPES[endingOf(path)]?.kind === kind)
  if (message.role === 'user') return message.content.flatMap((part) => (part.type === 'text' ? namedFiles(part.text) : [])).filter(isRead)
  if (message.role !== 'tool' || !kinds.includes('image')) return []
  const used = message.content.flatMap((part) => usedFilesIn(part).used ?? [])
  return used.filter((path) => TYPES[endingOf(path)]?.kind === 'image')
}

const namedFiles = (text: string): readonly string[] => (text.includes('attachments/') ? namedAttachments(text) : [])

async function readFile(path: string, { workspace, log, read }: ShowFilesOptions): Promise<void> {
  const mediaType = TYPES[endingOf(path)]?.mediaType ?? ''
  try {
    const data = await workspace.read(path, { bytesMax: FILE_BYTES_MAX })
    read.set(path, { type: 'file', mediaType, filename: path.slice(path.lastIndexOf('/') + 1), data: { type: 'data', data } })
  } catch (error) {
    read.set(path, undefined)
    log.warn('attachment not sent to the model', { path, error })
  }
}

/** Tells whether a text names a file of a kind that models read. */
export const namesReadableFile = (text: string): boolean =>
  text.includes('attachments/') && namedAttachments(text).some((path) => Object.hasOwn(TYPES, endingOf(path)))

/** Whether a message of a person names an attachment. Text of the model itself names none. */
export const namesAttachment = ({ role, content }: ModelMessage, path: string): boolean =>
  role === 'user' && content.some((part) => part.type === 'text' && namedAttachments(part.text).includes(path))
