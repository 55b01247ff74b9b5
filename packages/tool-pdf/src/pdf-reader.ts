/** Reads PDFs off the main loop: one thread, started when it is needed and ended when it is not, one file at a time. */
import { setImmediate as nextRound } from 'node:timers/promises'
import { AppError } from '@sluice/sdk'
import { OneAtATime } from './one-at-a-time.ts'
import type { PdfAnswer, PdfJob, PdfText } from './pdf-job.ts'
import type { PdfThread, PdfThreadDeps } from './pdf-thread.ts'

export const PDF_BYTES_MAX = 50 * 1024 * 1024
const IDLE_MS_MAX = 30_000
/** What is copied without a pause. */
const PART_BYTES = 4 * 1024 * 1024
/** Some programs write a few bytes in front of the header. */
const HEADER_BYTES = 1024

export interface ReadOptions extends Pick<PdfJob, 'ranges' | 'charsMax'> {
  readonly signal: AbortSignal
}

export class PdfReader {
  readonly #deps: PdfThreadDeps
  readonly #turns = new OneAtATime()
  #thread: PdfThread | undefined
  #idle = new AbortController()
  #closed = false

  constructor(deps: PdfThreadDeps) {
    this.#deps = deps
  }

  /** Throws `invalid_request` for what cannot be read within the limits, `aborted`, or `unavailable` where others are in the way. */
  async read(pdf: Uint8Array, { ranges, charsMax, signal }: ReadOptions): Promise<PdfText> {
    refuseUnlessPdf(pdf)
    const answer = await this.#turns.run(() => this.#ask(pdf, { ranges, charsMax, signal }), signal)
    if (!('refusal' in answer)) return answer
    if (answer.cause !== undefined) this.#deps.log.debug('a PDF could not be read', { reason: answer.cause })
    throw new AppError('invalid_request', answer.refusal)
  }

  /** Ends what runs, for good. May be called twice. */
  async close(): Promise<void> {
    this.#closed = true
    this.#idle.abort()
    await this.#thread?.end()
  }

  async #ask(pdf: Uint8Array, { ranges, charsMax, signal }: ReadOptions): Promise<PdfAnswer> {
    this.#idle.abort()
    const thread = this.#thread && !this.#thread.ended ? this.#thread : await startThread(this.#deps)
    this.#thread = thread
    if (this.#closed) {
      await thread.end()
      throw new AppError('unavailable', 'PDFs are not read any more: this part of the daemon has stopped')
    }
    try {
      // A copy, for the worker to keep: what was given stays whole.
      return await thread.ask({ bytes: await copyInParts(pdf), ranges, charsMax }, signal)
    } finally {
      this.#endWhenIdle(thread)
    }
  }

  #endWhenIdle(thread: PdfThread): void {
    if (this.#closed || thread.ended) return
    const idle = new AbortController()
    this.#idle = idle
    void this.#deps.clock.sleep(IDLE_MS_MAX, idle.signal).then(() => (idle.signal.aborted ? undefined : thread.end()))
  }
}

/** Nothing of threads is loaded before there is a PDF. */
async function startThread(deps: PdfThreadDeps): Promise<PdfThread> {
  const { PdfThread } = await import('./pdf-thread.ts')
  return PdfThread.start(deps)
}

function refuseUnlessPdf(bytes: Uint8Array): void {
  if (bytes.length > PDF_BYTES_MAX) {
    throw new AppError('invalid_request', `the PDF has ${bytes.length} bytes, more than the ${PDF_BYTES_MAX} that can be read`)
  }
  const head = Buffer.from(bytes.buffer, bytes.byteOffset, Math.min(bytes.length, HEADER_BYTES))
  if (!head.includes('%PDF-')) throw new AppError('invalid_request', 'this is not a PDF: no PDF header stands at its beginning')
}

/** Fifty mebibytes at once would hold up everything else for longer than they may. */
async function copyInParts(bytes: Uint8Array): Promise<Uint8Array<ArrayBuffer>> {
  const copy = new Uint8Array(bytes.length)
  for (let at = 0; at < bytes.length; at += PART_BYTES) {
    if (at > 0) await nextRound()
    copy.set(bytes.subarray(at, at + PART_BYTES), at)
  }
  return copy
}
