/** Reads PDFs outside the main thread, one file at a time, in a worker that starts on demand and ends when idle. */
import { setImmediate as nextTick } from 'node:timers/promises'
import { SerialQueue } from '@sluice/kit'
import { AppError, type Clock, type Logger } from '@sluice/sdk'
import { parsePageRanges } from './page-ranges.ts'
import type { PageRange, PdfAnswer, PdfText } from './pdf-job.ts'
import type { PdfThread } from './pdf-thread.ts'

export const PDF_BYTES_MAX = 50 * 1024 * 1024
const PDFS_MAX = 32
const RETRY_AFTER_SECS = 5
const IDLE_MS_MAX = 30_000
/** About two thousand full pages, the most text that other features can handle in reasonable time. */
const TEXTS_CHARS_MAX = 4_000_000
/** Bytes that are copied before the event loop continues. */
const CHUNK_BYTES = 4 * 1024 * 1024
/** Some programs write a few bytes in front of the header. */
const HEADER_BYTES = 1024

export interface ReadRequest {
  /** An empty list selects every page. */
  readonly ranges: readonly PageRange[]
  /** Reading ends with the page that exceeds this number of characters. */
  readonly charsMax: number
  readonly signal: AbortSignal
}

export class PdfReader {
  readonly #clock: Clock
  readonly #log: Logger
  readonly #queue = new SerialQueue({ name: 'the PDF reader', tasksMax: PDFS_MAX, retryAfterSecs: RETRY_AFTER_SECS })
  #thread: PdfThread | undefined
  /** Cancels the timer that ends an idle thread. */
  #idle = new AbortController()
  #isClosed = false

  constructor(clock: Clock, log: Logger) {
    this.#clock = clock
    this.#log = log
  }

  /**
   * Throws `invalid_request` for a file that cannot be read within the limits, `aborted` when `signal` aborts, and
   * `unavailable` when too many PDFs wait or the reader is closed.
   */
  async read(pdf: Uint8Array, request: ReadRequest): Promise<PdfText> {
    refuseUnlessPdf(pdf)
    const answer = await this.#queue.run(() => this.#readInThread(pdf, request), request.signal)
    if (!('refusal' in answer)) return answer
    if (answer.cause !== undefined) this.#log.debug('PDF not readable', { reason: answer.cause })
    throw new AppError('invalid_request', answer.refusal)
  }

  /** Returns one text per requested page, in order. Throws like `read`, and `invalid_request` rather than return only part of the text. */
  async readTexts(pdf: Uint8Array, { pages, signal }: { readonly pages?: string; readonly signal: AbortSignal }): Promise<string[]> {
    const ranges = pages === undefined ? [] : parsePageRanges(pages)
    const { texts, truncated } = await this.read(pdf, { ranges, charsMax: TEXTS_CHARS_MAX, signal })
    if (truncated) throw new AppError('invalid_request', `The PDF has more than ${TEXTS_CHARS_MAX} characters of text; ask for fewer pages`)
    return texts.map(({ text, problem }) => (problem === 'broken' ? '[this page is broken and cannot be read]' : text))
  }

  /** Ends the worker and any read in progress; later reads throw. May be called twice. */
  async close(): Promise<void> {
    this.#isClosed = true
    this.#idle.abort()
    await this.#thread?.end()
  }

  async #readInThread(pdf: Uint8Array, { ranges, charsMax, signal }: ReadRequest): Promise<PdfAnswer> {
    this.#idle.abort()
    const thread = this.#thread && !this.#thread.isEnded ? this.#thread : await this.#startThread()
    this.#thread = thread
    if (this.#isClosed) {
      await thread.end()
      throw new AppError('unavailable', 'PDFs are no longer read: this feature has stopped')
    }
    try {
      // The worker takes ownership of the bytes, so it gets a copy and the caller's buffer stays intact.
      return await thread.read({ bytes: await copyInChunks(pdf), ranges, charsMax }, signal)
    } finally {
      this.#endWhenIdle(thread)
    }
  }

  /** Loads the code for threads only when the first PDF arrives. */
  async #startThread(): Promise<PdfThread> {
    const { PdfThread } = await import('./pdf-thread.ts')
    return PdfThread.start(this.#clock, this.#log)
  }

  #endWhenIdle(thread: PdfThread): void {
    if (this.#isClosed || thread.isEnded) return
    const idle = new AbortController()
    this.#idle = idle
    void this.#clock.sleep(IDLE_MS_MAX, idle.signal).then(() => (idle.signal.aborted ? undefined : thread.end()))
  }
}

function refuseUnlessPdf(bytes: Uint8Array): void {
  if (bytes.length > PDF_BYTES_MAX)
    throw new AppError('invalid_request', `The PDF has ${bytes.length} bytes; at most ${PDF_BYTES_MAX} are supported`)
  const head = Buffer.from(bytes.buffer, bytes.byteOffset, Math.min(bytes.length, HEADER_BYTES))
  if (!head.includes('%PDF-')) throw new AppError('invalid_request', 'This is not a PDF: the file does not begin with a PDF header')
}

/** Copies with pauses: 50 MiB at once would block the event loop for too long. */
async function copyInChunks(bytes: Uint8Array): Promise<Uint8Array<ArrayBuffer>> {
  const copy = new Uint8Array(bytes.length)
  for (let at = 0; at < bytes.length; at += CHUNK_BYTES) {
    if (at > 0) await nextTick()
    copy.set(bytes.subarray(at, at + CHUNK_BYTES), at)
  }
  return copy
}
