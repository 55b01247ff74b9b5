/**
 * A collector that sends its requests in a worker thread. Loading the exporter and encoding a batch do not block the main
 * thread, and a request that hangs ends with the thread.
 */
import { Worker } from 'node:worker_threads'
import { AppError, errorText } from '@sluice/sdk'
import type { Collector, Target } from './collector.ts'
import type { CollectorJob } from './collector-worker.ts'
import type { SpanObservation } from './describe-span.ts'

const RESOURCE_LIMITS = { maxOldGenerationSizeMb: 128, maxYoungGenerationSizeMb: 16 }

export class CollectorThread implements Collector {
  readonly #target: Target
  #worker: Worker | undefined
  /** The batch in progress. */
  #pending: PromiseWithResolvers<void> | undefined

  constructor(target: Target) {
    this.#target = target
  }

  /** Rejects with `upstream` if the collector does not accept the batch, and with `unavailable` if the thread ends. */
  async send(batch: readonly SpanObservation[]): Promise<void> {
    const worker = this.#worker ?? (await this.#start())
    const pending = Promise.withResolvers<void>()
    this.#pending = pending
    worker.ref()
    // One string takes a fraction of the time of cloning the objects.
    worker.postMessage(JSON.stringify(batch))
    try {
      await pending.promise
    } finally {
      worker.unref()
    }
  }

  close(): void {
    const worker = this.#worker
    this.#end('the request was aborted')
    void worker?.terminate()
  }

  async #start(): Promise<Worker> {
    const { COLLECTOR_WORKER_URL } = await import('./collector-worker.ts')
    const worker = new Worker(new URL(COLLECTOR_WORKER_URL), {
      workerData: { sendsSpansTo: this.#target } satisfies CollectorJob,
      resourceLimits: RESOURCE_LIMITS,
      argv: [],
      execArgv: [],
      stdout: true,
      stderr: true,
    })
    worker.unref()
    worker.on('message', (problem: string | null) => {
      if (problem === null) this.#pending?.resolve()
      else this.#pending?.reject(new AppError('upstream', problem))
    })
    const ended = (reason: string) => {
      if (this.#worker === worker) this.#end(reason)
    }
    worker.on('error', (error) => ended(errorText(error)))
    worker.on('exit', () => ended('the sending thread has ended'))
    this.#worker = worker
    return worker
  }

  #end(reason: string): void {
    this.#worker = undefined
    this.#pending?.reject(new AppError('unavailable', reason))
    this.#pending = undefined
  }
}
