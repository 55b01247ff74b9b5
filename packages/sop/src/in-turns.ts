/** Work on many things that lets others have their turn of the event loop in between. */
import { setImmediate } from 'node:timers/promises'

/** In order, `atOnce` of them before anybody else has a turn. Rejects with what `work` throws. */
export async function inTurns<Item>(items: Iterable<Item>, atOnce: number, work: (item: Item) => void): Promise<void> {
  let left = atOnce
  for (const item of items) {
    if (left === 0) {
      await setImmediate()
      left = atOnce
    }
    work(item)
    left--
  }
}
