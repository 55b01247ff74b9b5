/** Waits for what real work brings about, however busy the machine is. */

/** Only a condition that never holds takes this long. */
const WAIT_MS_MAX = 20_000

/** Runs one tick of the event loop. */
const tick = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

/** Takes steps until the condition holds: ticks of the event loop unless given. Throws if it does not hold after 20 s. */
export async function until(holds: () => boolean | Promise<boolean>, step: () => Promise<unknown> = tick): Promise<void> {
  for (const startMs = performance.now(); !(await holds()); await step())
    if (performance.now() - startMs > WAIT_MS_MAX) throw new Error(`this does not become true: ${holds}`)
}
