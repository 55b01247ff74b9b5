/**
 * The worker thread that sends batches to the collector. The daemon imports this module for its URL, and a worker runs it.
 * Import it only dynamically, so that a bundler puts it into a separate file.
 */
import { isMainThread, parentPort, workerData } from 'node:worker_threads'
import { errorText } from '@sluice/sdk'
import type { Target } from './collector.ts'
import type { SpanObservation } from './describe-span.ts'

export const COLLECTOR_WORKER_URL = import.meta.url

/** The worker data, by which the module recognizes that it runs in its worker. */
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
      await collector.send(JSON.parse(batch) as SpanObservation[])
      port.postMessage(null)
    } catch (error) {
      port.postMessage(errorText(error))
    }
  })
}
