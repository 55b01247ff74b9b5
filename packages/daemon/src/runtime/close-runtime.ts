/** How a runtime closes: features, approvals and turns end, in this order, before the store does. */
import { OpenSteps } from '@sluice/kit'
import { DRAIN_MS } from '../stop-times.ts'
import type { Features } from './open-features.ts'
import type { Opened } from './opened.ts'
import type { Parts } from './put-together.ts'

export interface Closing {
  /** The steps of a stop that have begun and not ended. */
  readonly stopSteps: OpenSteps
  /** Drains and closes features, agent and store. Turns have `drainMs` to end. Idempotent. */
  readonly close: (drainMs?: number) => Promise<void>
}

type Closed = Pick<Opened, 'ownership' | 'store'> & Pick<Features, 'lifecycle'> & Pick<Parts, 'approvals' | 'agent'>

/** `closed` is aborted once the features have ended. */
export function closingOf({ lifecycle, approvals, agent, ownership, store }: Closed, closed: AbortController): Closing {
  const stopSteps = new OpenSteps()
  let closing: Promise<void> | undefined
  const close = async (drainMs: number): Promise<void> => {
    // Features drain at once: a motor must not move for as long as turns may take to end.
    const drained = stopSteps.during('drain of features', lifecycle.drain())
    await stopSteps.during('approvals', approvals.stop())
    await stopSteps.during('turns', agent.drain(drainMs))
    await drained
    await stopSteps.during('end of features', lifecycle.close())
    closed.abort()
    await stopSteps.during('leases', ownership.stop())
    await stopSteps.during('store', store.close())
  }
  return {
    stopSteps,
    close: (drainMs = DRAIN_MS) => (closing ??= close(drainMs)),
  }
}
