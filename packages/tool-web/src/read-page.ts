/** Reads a page in a thread of its own, which is ended when a hostile page takes too long or too much memory. */
import { Worker } from 'node:worker_threads'
import { signalScope } from '@sluice/kit'
import { AppError, type Clock, errorText, type Logger } from '@sluice/sdk'
import type { PageSource } from './article-text.ts'

const PAGE_MS_MAX = 10_000
const RESOURCE_LIMITS = { maxOldGenerationSizeMb: 512, maxYoungGenerationSizeMb: 32, stackSizeMb: 4 }

export interface ReadingOptions {
  readonly signal: AbortSignal
  readonly clock: Clock
  readonly log: Logger
}

/** Resolves to the text of a page. Throws `invalid_request` for a page that cannot be read within the limits, and `aborted`. */
export async function readPage(page: PageSource, { signal, clock, log }: ReadingOptions): Promise<string> {
  const { PAGE_WORKER_MARK, PAGE_WORKER_URL } = await import('./page-worker.ts')
  using scope = signalScope([signal], PAGE_MS_MAX, clock)
  const worker = new Worker(new URL(PAGE_WORKER_URL), {
    workerData: PAGE_WORKER_MARK,
    resourceLimits: RESOURCE_LIMITS,
    // The thread does not see the daemon's environment, and the output of libraries is discarded.
    env: {},
    argv: [],
    execArgv: [],
    stdout: true,
    stderr: true,
  })
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  const tooMuch = new AppError('invalid_request', `The page cannot be read within ${PAGE_MS_MAX / 1000} s`)
  const stop = () => reject(scope.timedOut ? tooMuch : new AppError('aborted', 'Reading the page was aborted'))
  scope.signal.addEventListener('abort', stop, { once: true })
  if (scope.signal.aborted) stop()
  worker.on('message', resolve)
  worker.on('error', (error) => {
    log.warn('page not readable', { reason: errorText(error) })
    reject(new AppError('invalid_request', 'The page is too large or too deep to be read'))
  })
  worker.on('exit', () => reject(new AppError('unavailable', 'Reading the page was interrupted')))
  try {
    worker.postMessage(page)
    return await promise
  } finally {
    await worker.terminate()
  }
}
