/**
 * The collector as the daemon's main thread sees it: another thread makes the requests, so that neither loading the exporter nor
 * writing a batch holds anything up, and whatever hangs can be ended.
 */
import { Worker } from 'node:worker_threads'
import { AppError, errorText } from '@sluice/sdk'
import type { Collector, Target } from './collector.ts'
import type { CollectorJob } from './collector-worker.ts'
import type { Spanned } from './spanned.ts'

const RESOURCE_LIMITS = { maxOldGenerationSizeMb: 128, maxYoungGenerationSizeMb: 16 }

export class CollectorThread implements Collector {
  readonly #target: Target
  #worker: Worker | undefined
  #waiting: Pick<PromiseWithResolvers<void>, 'resolve' | 'reject'> | undefined

  constructor(target: Target) {
    this.#target = target
  }

  async send(batch: readonly Spanned[]): Promise<void> {
    const worker = this.#worker ?? (await this.#start())
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    this.#waiting = { resolve, reject }
    worker.ref()
    // As one text: that costs a fraction of handing over as many objects.
    worker.postMessage(JSON.stringify(batch))
    try {
      await promise
    } finally {
      worker.unref()
    }
  }

  close(): void {
    const worker = this.#worker
    this.#end('it was broken off')
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
      if (problem === null) this.#waiting?.resolve()
      else this.#waiting?.reject(new AppError('upstream', problem))
    })
    const ended = (reason: string) => {
      if (this.#worker === worker) this.#end(reason)
    }
    worker.on('error', (error) => ended(errorText(error)))
    worker.on('exit', () => ended('the thread that sends them has ended'))
    this.#worker = worker
    return worker
  }

  #end(reason: string): void {
    this.#worker = undefined
    this.#waiting?.reject(new AppError('unavailable', reason))
    this.#waiting = undefined
  }
}
