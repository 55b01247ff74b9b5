/** Lets answers that are ready in one turn of the event loop leave together, at its end. */

/**
 * A client that sleeps is woken by the first of them and is still awake for the others; waking it is the most expensive
 * part of sending a small answer. One answer alone leaves at once.
 */
export function createGather(): <Value>(value: Value) => Promise<Value> {
  let waiting: (() => void)[] = []
  const release = (): void => {
    const ready = waiting
    waiting = []
    for (const go of ready) go()
  }
  return (value) =>
    new Promise((resolve) => {
      if (waiting.push(() => resolve(value)) === 1) setImmediate(release)
    })
}
