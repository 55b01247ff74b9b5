/** Shows in a conversation that an answer is being made, for as long as it is. */

import { signalScope } from '@sluice/kit'
import type { Address, Channel, Clock } from '@sluice/sdk'

/** Platforms show it for five seconds and more. */
const EVERY_MS = 4000
const CALL_MS_MAX = 4000

export interface Typing {
  /** While a person is asked, nobody types. */
  pause(isPaused: boolean): void
  stop(): void
}

/** Nobody waits for it, and its failures are nobody's concern. */
export function startTyping({ channel, to, clock }: { readonly channel: Channel; readonly to: Address; readonly clock: Clock }): Typing {
  const stopped = new AbortController()
  let isPaused = false
  const call = async (): Promise<void> => {
    using limit = signalScope([stopped.signal], CALL_MS_MAX)
    await channel.typing?.(to, limit.signal).catch(() => {})
  }
  const show = async (): Promise<void> => {
    while (!stopped.signal.aborted) {
      if (!isPaused) await call()
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
