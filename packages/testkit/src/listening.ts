/** Runs a channel under the listener that the daemon uses, on the clock of its test host. */
import { Listener } from '@sluice/kit'
import type { Channel, ChannelHealth, Deliver, Gap, Host } from '@sluice/sdk'

/** A channel that listens. */
export interface Listening {
  /** The health that the daemon would report. */
  readonly health: ChannelHealth
  /** The reported gaps, in order. */
  readonly gaps: readonly Gap[]
  /** The time of the clock at which the next attempt begins; undefined while a connection runs. */
  readonly retryAtMs: number | undefined
  /** Stops listening. Resolves once everything has ended. */
  stop(): Promise<void>
}

/** Listens until `stop`. `random` replaces the random numbers of the delays. */
export function startListening(channel: Channel, host: Host, deliver: Deliver, random?: () => number): Listening {
  if (!channel.listen) throw new Error(`${channel.name} does not listen`)
  const { listen } = channel
  const gaps: Gap[] = []
  const abort = new AbortController()
  const listener = new Listener({
    clock: host.clock,
    log: host.log,
    fields: { channel: channel.name },
    connect: (context) => listen.call(channel, deliver, context),
    cursors: channel.cursors,
    onGap: (gap) => gaps.push(gap),
    ...(random && { random }),
  })
  const ended = listener.run(abort.signal)
  return {
    get health() {
      return listener.health
    },
    gaps,
    get retryAtMs() {
      return listener.retryAtMs
    },
    async stop() {
      abort.abort()
      await ended
    },
  }
}
