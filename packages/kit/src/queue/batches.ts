/** Work on many items with bounded concurrency, or in batches that leave the event loop free in between. */
import { setImmediate } from 'node:timers/promises'

/** Runs `work` on at most `concurrency` items at a time. Resolves to the results in the order of the items; starts nothing more after a rejection. */
export async function mapConcurrently<Item, Result>(
  items: readonly Item[],
  concurrency: number,
  work: (item: Item) => Promise<Result>,
): Promise<Result[]> {
  const results: Result[] = []
  const queue = items.entries()
  const worker = async (): Promise<void> => {
    for (const [index, item] of queue) results[index] = await work(item)
  }
  await Promise.all(Array.from({ length: Math.min(concurrency, items.length) }, worker))
  return results
}

/** Runs `work` on the items in order and yields to the event loop after every `batchSize` of them. Rejects when `work` throws. */
export async function forEachInBatches<Item>(items: Iterable<Item>, batchSize: number, work: (item: Item) => void): Promise<void> {
  let left = batchSize
  for (const item of items) {
    if (left === 0) {
      await setImmediate()
      left = batchSize
    }
    work(item)
    left--
  }
}
