/** One worker thread that reads PDFs, and the limits of time and memory it is held to. */
import { Worker } from 'node:worker_threads'
import { AppError, type Clock, errorText, type Logger } from '@sluice/sdk'
import type { PdfAnswer, PdfJob } from './pdf-job.ts'
import { watchMemory } from './watch-memory.ts'

export interface PdfThreadDeps {
  readonly clock: Clock
  readonly log: Logger
}

const JOB_MS_MAX = 20_000
const MEBIBYTE = 1024 * 1024
const MEMORY_BYTES_MAX = 384 * MEBIBYTE
/**
 * The last resort, should this thread be kept from looking. It is far above `MEMORY_BYTES_MAX` because a worker that wants
 * much more at once than these leave takes the whole process with it.
 */
const RESOURCE_LIMITS = { maxOldGenerationSizeMb: 2048, maxYoungGenerationSizeMb: 32, stackSizeMb: 4 }

const TOO_SLOW = `the PDF takes longer than ${JOB_MS_MAX / 1000} seconds to read; fewer pages may do`
const TOO_MUCH = `the PDF takes more than ${MEMORY_BYTES_MAX / MEBIBYTE} MiB of memory to read`

type Waiting = Pick<PromiseWithResolvers<PdfAnswer>, 'resolve' | 'reject'>

export class PdfThread {
  readonly #deps: PdfThreadDeps
  readonly #worker: Worker
  #waiting: Waiting | undefined
  #ended = false

  private constructor(deps: PdfThreadDeps, worker: Worker) {
    this.#deps = deps
    this.#worker = worker
    worker.unref()
    worker.on('message', (answer: PdfAnswer) => this.#waiting?.resolve(answer))
    worker.on('error', (error) => this.#failed(error))
    worker.on('exit', () => {
      this.#ended = true
      this.#waiting?.reject(brokenOff())
    })
  }

  static async start(deps: PdfThreadDeps): Promise<PdfThread> {
    const { PDF_WORKER_MARK, PDF_WORKER_URL } = await import('./pdf-worker.ts')
    const worker = new Worker(new URL(PDF_WORKER_URL), {
      workerData: PDF_WORKER_MARK,
      resourceLimits: RESOURCE_LIMITS,
      // Nothing of the daemon's goes in, and nothing the library prints comes out.
      env: {},
      argv: [],
      execArgv: [],
      stdout: true,
      stderr: true,
    })
    return new PdfThread(deps, worker)
  }

  get ended(): boolean {
    return this.#ended
  }

  /** One job at a time. Throws for what ended the thread: `invalid_request` for a limit, `aborted`, `unavailable` after `end`. */
  async ask(job: PdfJob, signal: AbortSignal): Promise<PdfAnswer> {
    if (this.#ended) throw brokenOff()
    if (signal.aborted) throw aborted()
    const { promise, resolve, reject } = Promise.withResolvers<PdfAnswer>()
    const over = new AbortController()
    const { clock } = this.#deps
    const refuse = (why: string) => reject(new AppError('invalid_request', why))
    this.#waiting = { resolve, reject }
    signal.addEventListener('abort', () => reject(aborted()), { signal: over.signal })
    void clock.sleep(JOB_MS_MAX, over.signal).then(() => over.signal.aborted || refuse(TOO_SLOW))
    void watchMemory(this.#worker, MEMORY_BYTES_MAX, clock, over.signal).then((tooMuch) => tooMuch && refuse(TOO_MUCH))
    try {
      this.#worker.ref()
      this.#worker.postMessage(job, [job.bytes.buffer])
      return await promise
    } catch (error) {
      await this.end()
      throw error
    } finally {
      over.abort()
      this.#waiting = undefined
      this.#worker.unref()
    }
  }

  /** May be called twice, and while a job runs. */
  async end(): Promise<void> {
    this.#ended = true
    await this.#worker.terminate()
  }

  /** Whatever escapes the library: only a file can make it do so. */
  #failed(error: Error & { readonly code?: string }): void {
    this.#ended = true
    this.#deps.log.warn('the PDF worker failed', { reason: errorText(error) })
    const isMemory = error.code === 'ERR_WORKER_OUT_OF_MEMORY'
    this.#waiting?.reject(new AppError('invalid_request', isMemory ? TOO_MUCH : 'the PDF is broken: reading it failed'))
  }
}

const aborted = () => new AppError('aborted', 'reading the PDF was aborted')
const brokenOff = () => new AppError('unavailable', 'reading the PDF was broken off')
