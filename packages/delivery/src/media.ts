/** Turns the attachments of a message into text for the model: what was said in a recording, and files in the workspace. */

import { signalScope } from '@sluice/kit'
import {
  AppError,
  type Attachment,
  type Channel,
  type Clock,
  type Inbound,
  type Logger,
  type Media,
  sha256Hex,
  type Transcribe,
  type Workspace,
} from '@sluice/sdk'
import { mediaExtension } from './media-extension.ts'

export interface MediaOptions {
  readonly channel: Channel
  readonly workspace: Workspace
  /** Absent: recordings are files like any other. */
  readonly transcribe: Transcribe | undefined
  readonly log: Logger
  readonly clock: Clock
  /** Aborts when the daemon stops. */
  readonly signal: AbortSignal
}

/** Of one message; what is beyond it is told by number. */
const ATTACHMENTS_MAX = 10
const ATTACHMENT_BYTES_MAX = 25 * 1024 * 1024
/** A fetch that takes longer has failed. */
const FETCH_MS_MAX = 120_000
const TRIES_MAX = 3
/** Before the second try; twice as long before the third. */
const RETRY_WAIT_MS = 1000
const NAME_CHARS_MAX = 100
const URL_CHARS_MAX = 2000

const LABELS = { image: 'Image', audio: 'Audio', video: 'Video', file: 'Document' } as const

/**
 * The message's text with its attachments told of: recordings as what was said in them, anything else as a file in the
 * workspace. What fails is told there, too; rejects with `aborted` when `signal` aborts, and with nothing else.
 */
export async function textWithMedia({ text, attachments = [] }: Inbound, options: MediaOptions): Promise<string> {
  if (attachments.length === 0) return text
  const lines = text === '' ? [] : [text]
  // One after the other: each may fill its limit in memory.
  for (const attachment of attachments.slice(0, ATTACHMENTS_MAX)) lines.push(await lineOf(attachment, options))
  const leftOut = attachments.length - ATTACHMENTS_MAX
  if (leftOut > 0) lines.push(`(${leftOut} more attachments were left out)`)
  return lines.join('\n')
}

async function lineOf(attachment: Attachment, options: MediaOptions): Promise<string> {
  const { channel, workspace, transcribe, signal } = options
  const { kind, name, mime } = attachment
  const trial = { ...options, kind }
  const label = `[${LABELS[kind]}: ${shownName(name)}]`
  if (!channel.fetchMedia) return `${label} ${shownUrl(attachment)}`.trimEnd()
  const fetched = await tried('fetched', () => fetchBytes(attachment, options), trial)
  if ('failure' in fetched) return `${label} ${fetched.failure}`

  const { bytes, mime: fetchedMime } = fetched.value
  const type = mime ?? fetchedMime
  let note = ''
  if (kind === 'audio' && transcribe) {
    const recording = { bytes, name, ...(type !== undefined && { mime: type }) }
    const heard = await tried('transcribed', () => transcribe(recording, { signal }), trial)
    if ('value' in heard) return `[Voice] ${oneLine(heard.value) || '(nothing was said)'}`
    note = ` ${heard.failure}`
  }
  // Never a name the sender chose: it could stand for another file.
  const path = `attachments/${sha256Hex(bytes).slice(0, 16)}.${mediaExtension(name, mime, fetchedMime)}`
  const saved = await tried('saved', () => workspace.write(path, bytes), trial)
  return 'failure' in saved ? `${label} ${saved.failure}` : `${label} ${path}${note}`
}

async function fetchBytes(attachment: Attachment, { channel, clock, signal }: MediaOptions): Promise<Media> {
  using limit = signalScope([signal], FETCH_MS_MAX, clock)
  const media = await channel.fetchMedia?.(attachment, { bytesMax: ATTACHMENT_BYTES_MAX, signal: limit.signal })
  if (!media) throw new AppError('internal', `${channel.name} fetches no media`)
  if (media.bytes.length > ATTACHMENT_BYTES_MAX) throw new AppError('too_large', `it has ${media.bytes.length} bytes`)
  return media
}

type Outcome<Value> = { readonly value: Value } | { readonly failure: string }
type Trial = Pick<MediaOptions, 'channel' | 'clock' | 'log' | 'signal'> & Pick<Attachment, 'kind'>

/** What may succeed later is tried again; what fails is logged and becomes words. */
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
        await clock.sleep(RETRY_WAIT_MS * tries, signal)
        continue
      }
      // The text of any other error may quote a URL, and that a token.
      const reason = error instanceof AppError ? error.message : error instanceof Error ? error.name : typeof error
      log.warn(`an attachment could not be ${done}`, { channel: channel.name, kind, code, reason, tries })
      return { failure: `(could not be ${done}${code === 'too_large' ? ': too large' : ''})` }
    }
  }
}

function throwIfAborted(signal: AbortSignal): void {
  if (signal.aborted) throw new AppError('aborted', 'the attachments were left because the daemon stops')
}

/** One line, without anything that could pass for another attachment or a path. */
const shownName = (name: string): string =>
  Array.from(name.replace(/[\p{C}\p{Z}[\]\\/]+/gu, ' ').trim())
    .slice(0, NAME_CHARS_MAX)
    .join('') || 'unnamed'

const oneLine = (text: string): string => text.replace(/\s+/g, ' ').trim()

function shownUrl({ source }: Attachment): string {
  const url = 'url' in source ? URL.parse(source.url) : null
  return url && /^https?:$/.test(url.protocol) && url.href.length <= URL_CHARS_MAX ? url.href : ''
}
