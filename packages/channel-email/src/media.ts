/** Fetches attachments over a connection of its own, because another process may be the one that listens. */
import { SerialQueue } from '@sluice/kit'
import { AppError, type Attachment, errorText, type Host, type Media } from '@sluice/sdk'
import type { Credentials } from './credentials.ts'
import { bodyIn } from './fetch-mail.ts'
import { ImapRefusal, UnreadableResponse } from './imap-line.ts'
import { answerBytesMax, type OpenFolder, openFolder } from './mailbox.ts'
import { type MediaId, parseMediaId } from './media-id.ts'
import type { Settings } from './settings.ts'
import { decodeTransfer } from './structure.ts'

/** The attachments of one mail are fetched one after another over one connection, which ends after this time. */
const KEEP_MS = 10_000
const FETCHES_MAX = 100

export class MediaReader {
  readonly #host: Host
  readonly #settings: Settings
  readonly #credentials: Credentials
  readonly #queue = new SerialQueue({ name: 'the IMAP server', tasksMax: FETCHES_MAX })
  #opened: OpenFolder | undefined
  #fetches = 0

  constructor(host: Host, settings: Settings, credentials: Credentials) {
    this.#host = host
    this.#settings = settings
    this.#credentials = credentials
  }

  /** See `Channel.fetchMedia`. */
  async fetch({ source, mime }: Attachment, bytesMax: number, signal: AbortSignal): Promise<Media> {
    const id = 'id' in source ? parseMediaId(source.id) : undefined
    if (!id) throw new AppError('invalid_request', 'The attachment has no id of a mail')
    const limit = Math.min(bytesMax, this.#settings.attachmentBytesMax)
    const bytes = await this.#queue.run(() => this.#fetch(id, limit, signal), signal)
    if (bytes.length > limit) throw new AppError('too_large', `The attachment is larger than ${limit} bytes`)
    return { bytes, ...(mime !== undefined && { mime }) }
  }

  /** A connection that was kept may have ended without a sign, so a failure on it says nothing. */
  async #fetch(id: MediaId, bytesMax: number, signal: AbortSignal): Promise<Uint8Array> {
    const isKept = this.#opened !== undefined
    try {
      return await this.#attempt(id, bytesMax, signal)
    } catch (error) {
      if (!isKept || signal.aborted || !(error instanceof AppError) || error.code !== 'unavailable') throw error
      return this.#attempt(id, bytesMax, signal)
    }
  }

  async #attempt(id: MediaId, bytesMax: number, signal: AbortSignal): Promise<Uint8Array> {
    let stop: (() => void) | undefined
    try {
      const { imap, folder } = await this.#open(signal)
      stop = () => imap.destroy()
      signal.addEventListener('abort', stop, { once: true })
      if (folder.uidValidity !== id.uidValidity) throw gone()
      const fetched = await imap.fetch(id.uid, `BODY.PEEK[${id.part}]<0.${answerBytesMax(bytesMax)}>`)
      const part = fetched && bodyIn(fetched, id.part)
      if (!part) throw gone()
      this.#closeLater()
      return decodeTransfer(part, id.encoding)
    } catch (error) {
      this.#close()
      throw asMediaError(error)
    } finally {
      if (stop) signal.removeEventListener('abort', stop)
    }
  }

  /** The connection outlives the fetch that opened it. */
  async #open(signal: AbortSignal): Promise<OpenFolder> {
    if (this.#opened && !this.#opened.imap.signal.aborted) return this.#opened
    const opening = new AbortController()
    const abort = (): void => opening.abort()
    signal.addEventListener('abort', abort, { once: true })
    if (signal.aborted) abort()
    try {
      this.#opened = await openFolder(this.#host, this.#settings, this.#credentials, opening.signal)
      return this.#opened
    } finally {
      signal.removeEventListener('abort', abort)
    }
  }

  #closeLater(): void {
    const fetches = ++this.#fetches
    void this.#host.clock.sleep(KEEP_MS, this.#opened?.imap.signal).then(() => {
      if (fetches === this.#fetches && this.#queue.isIdle) this.#close()
    })
  }

  #close(): void {
    this.#opened?.imap.logOut()
    this.#opened = undefined
  }
}

function asMediaError(error: unknown): unknown {
  if (error instanceof ImapRefusal || error instanceof UnreadableResponse)
    return new AppError('unavailable', `The IMAP server did not return an attachment: ${errorText(error)}`)
  // The turn waits until the operator has helped.
  return error instanceof AppError && error.code === 'forbidden' ? new AppError('unavailable', error.message) : error
}

const gone = (): AppError => new AppError('not_found', 'The mail of the attachment is no longer in the mailbox')
