/** Shows in a conversation that a reply is being written. */

import { signalScope } from '@sluice/kit'
import type { Address, Channel, Clock, Lease } from '@sluice/sdk'

/**
 * An answer that comes sooner needs no indicator. A call that is under way at the end of its turn is aborted, which costs its
 * connection: with turns of a few milliseconds, that took a quarter of the processor time of a reply.
 */
const AFTER_MS = 500
/** Platforms show one call for at least five seconds. */
const EVERY_MS = 4000
const CALL_MS_MAX = 4000

export interface Typing {
  /** Shows nothing while a person is asked. */
  readonly pause: (isPaused: boolean) => void
  readonly stop: () => void
}

export interface TypingOptions {
  readonly channel: Pick<Channel, 'typing'>
  readonly to: Address
  readonly clock: Clock
  /** The lease under which the turn runs. Without it, or while it is in doubt, nothing is shown. */
  readonly lease: Pick<Lease, 'mayAct'>
}

/** Starts soon, until `stop`. Failures of the platform are ignored, and the turn never waits for it. */
export function startTyping({ channel, to, clock, lease }: TypingOptions): Typing {
  const stopped = new AbortController()
  let isPaused = false
  const call = async (): Promise<void> => {
    using limit = signalScope([stopped.signal], CALL_MS_MAX)
    await channel.typing?.(to, limit.signal).catch(() => {})
  }
  const show = async (): Promise<void> => {
    await clock.sleep(AFTER_MS, stopped.signal)
    while (!stopped.signal.aborted) {
      if (!isPaused && lease.mayAct()) await call()
      await clock.sleep(EVERY_MS, stopped.signal)
    }
  }
  if (channel.typing) void show()
  return {
    pause: (paused) => {
      isPaused = paused
    },
    stop: () => stopped.abort(),
  }
}
