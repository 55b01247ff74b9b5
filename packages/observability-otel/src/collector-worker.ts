/**
 * The thread that talks to the collector: a module the daemon imports to learn where it is, and a thread runs to send batches.
 * It is only ever imported dynamically, so that a bundler gives it a file of its own.
 */
import { isMainThread, parentPort, workerData } from 'node:worker_threads'
import { errorText } from '@sluice/sdk'
import type { Target } from './collector.ts'
import type { Spanned } from './spanned.ts'

export const COLLECTOR_WORKER_URL = import.meta.url

/** What the thread is started with; says that it is this one. */
export interface CollectorJob {
  readonly sendsSpansTo: Target
}

const isJob = (data: unknown): data is CollectorJob => typeof data === 'object' && data !== null && 'sendsSpansTo' in data

if (!isMainThread && parentPort && isJob(workerData)) {
  const port = parentPort
  const { openCollector } = await import('./collector.ts')
  const collector = openCollector(workerData.sendsSpansTo)
  port.on('message', async (batch: string) => {
    try {
      await collector.send(JSON.parse(batch) as Spanned[])
      port.postMessage(null)
    } catch (error) {
      port.postMessage(errorText(error))
    }
  })
}
