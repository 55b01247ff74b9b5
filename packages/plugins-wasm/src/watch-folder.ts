/** Notices plugins that come and go, however that is done; on network shares, too, where no events are heard. */
import type { Clock } from '@sluice/sdk'

const LOOK_EVERY_MS = 2000

/** Calls `onChange` once, after `stamp` has given something else than `known`; then it is over, as after `signal` aborts. */
export async function watchFolder(
  { stamp, known }: { readonly stamp: () => Promise<string>; readonly known: string },
  clock: Clock,
  signal: AbortSignal,
  onChange: () => void,
): Promise<void> {
  while (!signal.aborted) {
    await clock.sleep(LOOK_EVERY_MS, signal)
    if (signal.aborted || (await stamp()) === known) continue
    onChange()
    return
  }
}
