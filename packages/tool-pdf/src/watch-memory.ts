/** Keeps an eye on what a worker takes. */
import type { Worker } from 'node:worker_threads'
import type { Clock } from '@sluice/sdk'

const LOOK_EVERY_MS = 25

/**
 * Resolves to true once the worker holds more than `bytesMax`, its buffers included, and to false once `signal` aborts.
 * The limits of `new Worker` do not do: they leave buffers out, and a single large allocation beyond them ends the process.
 */
export async function watchMemory(worker: Worker, bytesMax: number, clock: Clock, signal: AbortSignal): Promise<boolean> {
  while (!signal.aborted) {
    await clock.sleep(LOOK_EVERY_MS, signal)
    if (signal.aborted) break
    // A worker that is gone has nothing to tell; whoever runs it hears of its end by other ways.
    const heap = await worker.getHeapStatistics().catch(() => undefined)
    if (heap && heap.used_heap_size + heap.external_memory > bytesMax) return true
  }
  return false
}
