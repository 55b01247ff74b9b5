/** One worker thread that reads PDFs, with its limits of time and memory. */
import { Worker } from 'node:worker_threads'
import { signalScope } from '@sluice/kit'
import { AppError, type Clock, errorText, type Logger } from '@sluice/sdk'
import type { PdfAnswer, PdfJob } from './pdf-job.ts'

const JOB_MS_MAX = 20_000
const MEBIBYTE = 1024 * 1024
const MEMORY_BYTES_MAX = 384 * MEBIBYTE
const MEMORY_CHECK_MS = 25
/**
 * The engine's own limits, for the case that the main thread is too busy to check. They are far above `MEMORY_BYTES_MAX`
 * because a worker that exceeds them by a single large allocation ends the whole process.
 */
const RESOURCE_LIMITS = { maxOldGenerationSizeMb: 2048, maxYoungGenerationSizeMb: 32, stackSizeMb: 4 }

const TOO_SLOW = `The PDF takes longer than ${JOB_MS_MAX / 1000} seconds to read; ask for fewer pages`
const TOO_LARGE = `The PDF takes more than ${MEMORY_BYTES_MAX / MEBIBYTE} MiB of memory to read`

export class PdfThread {
  readonly #clock: Clock
  readonly #log: Logger
  readonly #worker: Worker
  #job: PromiseWithResolvers<PdfAnswer> | undefined
  #isEnded = false

  private constructor(worker: Worker, clock: Clock, log: Logger) {
    this.#clock = clock
    this.#log = log
    this.#worker = worker
    worker.unref()
    worker.on('message', (answer: PdfAnswer) => this.#job?.resolve(answer))
    worker.on('error', (error) => this.#onError(error))
    worker.on('exit', () => {
      this.#isEnded = true
      this.#job?.reject(interrupted())
    })
  }

  static async start(clock: Clock, log: Logger): Promise<PdfThread> {
    const { PDF_WORKER_MARK, PDF_WORKER_URL } = await import('./pdf-worker.ts')
    const worker = new Worker(new URL(PDF_WORKER_URL), {
      workerData: PDF_WORKER_MARK,
      resourceLimits: RESOURCE_LIMITS,
      // The worker does not see the daemon's environment, and the library's output is discarded.
      env: {},
      argv: [],
      execArgv: [],
      stdout: true,
      stderr: true,
    })
    return new PdfThread(worker, clock, log)
  }

  get isEnded(): boolean {
    return this.#isEnded
  }

  /**
   * Runs one job; the caller must not start another meanwhile. Throws `invalid_request` when the job exceeds a limit,
   * `aborted` when `signal` aborts, and `unavailable` after `end`. The thread has ended in each of these cases.
   */
  async read(job: PdfJob, signal: AbortSignal): Promise<PdfAnswer> {
    if (this.#isEnded) throw interrupted()
    if (signal.aborted) throw aborted()
    using scope = signalScope([signal], JOB_MS_MAX, this.#clock)
    const pending = Promise.withResolvers<PdfAnswer>()
    this.#job = pending
    scope.signal.addEventListener('abort', () => pending.reject(scope.timedOut ? new AppError('invalid_request', TOO_SLOW) : aborted()))
    void this.#rejectAboveMemoryLimit(pending, scope.signal)
    try {
      this.#worker.ref()
      this.#worker.postMessage(job, [job.bytes.buffer])
      return await pending.promise
    } catch (error) {
      await this.end()
      throw error
    } finally {
      this.#job = undefined
      this.#worker.unref()
    }
  }

  /** May be called twice, and while a job runs. */
  async end(): Promise<void> {
    this.#isEnded = true
    await this.#worker.terminate()
  }

  /**
   * Checks the memory of the worker, buffers included, until `signal` aborts. The limits of `new Worker` do not count buffers.
   */
  async #rejectAboveMemoryLimit(job: PromiseWithResolvers<PdfAnswer>, signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.#clock.sleep(MEMORY_CHECK_MS, signal)
      if (signal.aborted) return
      // The call fails once the worker has ended; the `exit` handler reports that.
      const heap = await this.#worker.getHeapStatistics().catch(() => undefined)
      if (heap && heap.used_heap_size + heap.external_memory > MEMORY_BYTES_MAX) {
        job.reject(new AppError('invalid_request', TOO_LARGE))
        return
      }
    }
  }

  /** Handles an error that the worker did not catch. Only a hostile file causes one. */
  #onError(error: Error & { readonly code?: string }): void {
    this.#isEnded = true
    this.#log.warn('PDF worker failed', { reason: errorText(error) })
    const isMemory = error.code === 'ERR_WORKER_OUT_OF_MEMORY'
    this.#job?.reject(new AppError('invalid_request', isMemory ? TOO_LARGE : 'The PDF is broken: reading it failed'))
  }
}

const aborted = () => new AppError('aborted', 'Reading the PDF was aborted')
const interrupted = () => new AppError('unavailable', 'Reading the PDF was interrupted because its worker ended')
