/** Turns the attachments of a message into text for the model: recordings into their words, other files into paths in the workspace. */

import { readFile } from 'node:fs/promises'
import { signalScope } from '@sluice/kit'
import {
  type AgentWorkspace,
  AppError,
  type Attachment,
  type Channel,
  type Clock,
  type FileShare,
  type Inbound,
  type Logger,
  type Media,
  type NewAttachment,
  type Transcribe,
} from '@sluice/sdk'
import type { FileLine, FilesRead } from './files-read.ts'

export interface MediaOptions {
  readonly channel: Channel
  readonly workspace: AgentWorkspace
  /** Whose files they are, and how much of them is kept. */
  readonly keep: Pick<NewAttachment, 'owner' | keyof FileShare>
  /** Absent: recordings are files like any other. */
  readonly transcribe: Transcribe | undefined
  /** The lines that earlier attempts of the message have got. Absent: each file is read. */
  readonly filesRead?: FilesRead
  readonly log: Logger
  readonly clock: Clock
  /** Aborts when the turn or the daemon stops. */
  readonly signal: AbortSignal
}

/** What saving needs of the options: the name of the channel is for the log. */
export type SaveOptions = Omit<MediaOptions, 'channel' | 'filesRead'> & { readonly channel: Pick<Channel, 'name'> }

/** The most attachments of one message; the line after them gives the number of the others. */
export const ATTACHMENTS_MAX = 10
const ATTACHMENT_BYTES_MAX = 25 * 1024 * 1024
/** A fetch fails after this time. */
const FETCH_MS_MAX = 120_000
const TRIES_MAX = 3
/** The delay before the second try; the delay before the third is twice as long. */
const RETRY_DELAY_MS = 1000
const NAME_CHARS_MAX = 100
const URL_CHARS_MAX = 2000

const LABELS = { image: 'Image', audio: 'Audio', video: 'Video', file: 'Document' } as const

/**
 * Resolves to the text of the message and a line for each attachment: the words of a recording, the path of any other file, or
 * the reason of a failure. Rejects only with `aborted`, when `signal` aborts.
 */
export async function textWithMedia({ text, attachments = [] }: Inbound, options: MediaOptions): Promise<string> {
  if (attachments.length === 0) return text
  const lines = text === '' ? [] : [text]
  // One after the other, because each may take ATTACHMENT_BYTES_MAX of memory.
  for (const attachment of attachments.slice(0, ATTACHMENTS_MAX)) lines.push(await lineOf(attachment, options))
  const leftOut = attachments.length - ATTACHMENTS_MAX
  if (leftOut > 0) lines.push(`(${leftOut} more attachments were left out)`)
  return lines.join('\n')
}

async function lineOf(attachment: Attachment, options: MediaOptions): Promise<string> {
  const { channel, filesRead } = options
  const label = labelOf(attachment)
  if (!channel.fetchMedia) return `${label} ${shownUrl(attachment)}`.trimEnd()
  const known = await filesRead?.lineOf(attachment)
  if (known !== undefined) return known
  const fetched = await tried('fetched', () => fetchBytes(attachment, options), { ...options, kind: attachment.kind })
  const read: MediaLine =
    'failure' in fetched ? { line: `${label} ${fetched.failure}`, isFailed: true } : await lineOfMedia(attachment, fetched.value, options)
  await filesRead?.keep(attachment, read)
  return read.line
}

const labelOf = ({ kind, name }: Pick<Attachment, 'kind' | 'name'>): string => `[${LABELS[kind]}: ${shownName(name)}]`

/** The line of an attachment, and the reason why it was not saved. */
export interface MediaLine extends FileLine {
  readonly error?: unknown
}

/** Resolves to the line of an attachment whose bytes are there: the words of a recording, else the path of the saved file. */
export async function lineOfMedia(
  attachment: Pick<Attachment, 'kind' | 'name' | 'mime'>,
  { bytes, mime: fetchedMime }: Pick<Media, 'mime'> & Pick<NewAttachment, 'bytes'>,
  options: SaveOptions,
): Promise<MediaLine> {
  const { workspace, keep, transcribe, signal } = options
  const { kind, name, mime } = attachment
  const trial = { ...options, kind }
  const label = labelOf(attachment)
  const type = mime ?? fetchedMime
  let note = ''
  if (kind === 'audio' && transcribe) {
    const recorded = 'sha256' in bytes ? await readFile(bytes.path) : bytes
    const recording = { bytes: recorded, name, ...(type !== undefined && { mime: type }) }
    const words = await tried('transcribed', () => transcribe(recording, { signal, workspace }), trial)
    if ('value' in words) return { line: `[Voice] ${oneLine(words.value) || '(nothing was said)'}` }
    note = ` ${words.failure}`
  }
  // The name of the file is not the one that the sender gives, because that could be the name of another file.
  const extension = mediaExtension(name, mime, fetchedMime)
  const saved = await tried('saved', () => workspace.attach({ ...keep, bytes, extension }), trial)
  if ('failure' in saved) return { line: `${label} ${saved.failure}`, isFailed: true, error: saved.error }
  return { line: `${label} ${saved.value}${note}`, path: saved.value, ...(note !== '' && { isFailed: true }) }
}

async function fetchBytes(attachment: Attachment, { channel, clock, signal }: MediaOptions): Promise<Media> {
  using limit = signalScope([signal], FETCH_MS_MAX, clock)
  const media = await channel.fetchMedia?.(attachment, { bytesMax: ATTACHMENT_BYTES_MAX, signal: limit.signal })
  if (!media) throw new AppError('internal', `${channel.name} fetches no media`)
  if (media.bytes.length > ATTACHMENT_BYTES_MAX) throw new AppError('too_large', `it has ${media.bytes.length} bytes`)
  return media
}

type Outcome<Value> = { readonly value: Value } | { readonly failure: string; readonly error: unknown }
type Trial = Pick<SaveOptions, 'channel' | 'clock' | 'log' | 'signal'> & Pick<Attachment, 'kind'>

/** Runs a step of an attachment, and again after `unavailable`. A failure is logged and becomes text for the model. */
async function tried<Value>(done: 'fetched' | 'transcribed' | 'saved', run: () => Promise<Value>, trial: Trial): Promise<Outcome<Value>> {
  const { channel, clock, kind, log, signal } = trial
  for (let tries = 1; ; tries++) {
    throwIfAborted(signal)
    try {
      return { value: await run() }
    } catch (error) {
      throwIfAborted(signal)
      const code = error instanceof AppError ? error.code : 'internal'
      if (code === 'unavailable' && tries < TRIES_MAX) {
        await clock.sleep(RETRY_DELAY_MS * tries, signal)
        continue
      }
      // The message of any other error may quote a URL with a token.
      const reason = error instanceof AppError ? error.message : error instanceof Error ? error.name : typeof error
      log.warn(`attachment not ${done}`, { channel: channel.name, kind, code, reason, tries })
      if (code === 'share_used') return { failure: '(was not kept: the attachments of this sender have used up their share)', error }
      return { failure: `(could not be ${done}${code === 'too_large' ? ': too large' : ''})`, error }
    }
  }
}

function throwIfAborted(signal: AbortSignal): void {
  if (signal.aborted) throw new AppError('aborted', 'The attachments were not read because the turn or the daemon stops')
}

/** The name on one line, without characters that could pass for another attachment or a path. */
const shownName = (name: string): string =>
  Array.from(name.replace(/[\p{C}\p{Z}[\]\\/]+/gu, ' ').trim())
    .slice(0, NAME_CHARS_MAX)
    .join('') || 'unnamed'

const oneLine = (text: string): string => text.replace(/\s+/g, ' ').trim()

function shownUrl({ source }: Attachment): string {
  const url = 'url' in source ? URL.parse(source.url) : null
  return url && /^https?:$/.test(url.protocol) && url.href.length <= URL_CHARS_MAX ? url.href : ''
}

const BY_MIME = {
  'image/jpeg': 'jpg',
  'image/png': 'png',
  'image/gif': 'gif',
  'image/webp': 'webp',
  'image/heic': 'heic',
  'audio/ogg': 'ogg',
  'audio/opus': 'ogg',
  'audio/mpeg': 'mp3',
  'audio/mp4': 'm4a',
  'audio/x-m4a': 'm4a',
  'audio/aac': 'aac',
  'audio/amr': 'amr',
  'audio/wav': 'wav',
  'audio/x-wav': 'wav',
  'audio/webm': 'webm',
  'audio/flac': 'flac',
  'video/mp4': 'mp4',
  'video/3gpp': '3gp',
  'video/quicktime': 'mov',
  'video/webm': 'webm',
  'application/pdf': 'pdf',
  'application/json': 'json',
  'application/zip': 'zip',
  'text/plain': 'txt',
  'text/csv': 'csv',
  'text/html': 'html',
  'text/markdown': 'md',
} as const satisfies Record<string, string>

const NAME_EXTENSION = /\.([a-z0-9]{1,8})$/i

/** The extension of a saved attachment: of the first known media type, else of the name; always lower-case letters and digits. */
export function mediaExtension(name: string, ...mimes: readonly (string | undefined)[]): string {
  for (const mime of mimes) {
    const type = mime?.split(';', 1)[0]?.trim().toLowerCase() ?? ''
    if (Object.hasOwn(BY_MIME, type)) return BY_MIME[type as keyof typeof BY_MIME]
  }
  return NAME_EXTENSION.exec(name)?.[1]?.toLowerCase() ?? 'bin'
}
