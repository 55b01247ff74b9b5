/** Connects for ever: again after each end of a connection, with pauses that grow. Says what an operator wants to know of it. */
import type { Host } from '@sluice/sdk'
import { type ConnectionEnd, endOf } from './connection-end.ts'
import { LONGEST_PAUSE_MS, pauseMs } from './pause.ts'

/** `connect` resolves when a connection has ended. Resolves soon after `signal` aborts. */
export async function keepConnected(
  { clock, log }: Pick<Host, 'clock' | 'log'>,
  broker: string,
  connect: () => Promise<ConnectionEnd>,
  signal: AbortSignal,
): Promise<void> {
  let failures = 0
  let told: string | undefined

  const tell = ({ reason, isRefusal, wasConnected }: ConnectionEnd): void => {
    if (wasConnected) log.warn('the connection to the MQTT broker was lost', { broker, reason })
    else if (reason === told) log.debug('the MQTT broker is still out of reach', { broker, reason })
    else if (isRefusal) log.error('the MQTT broker refuses us', { broker, reason })
    else log.warn('the MQTT broker is out of reach', { broker, reason })
    told = wasConnected ? undefined : reason
  }

  while (!signal.aborted) {
    const startedMs = clock.monotonicMs()
    const end = await connect().catch((error: unknown) => endOf(error))
    if (signal.aborted) return
    tell(end)
    // A connection that is taken from us again and again is a failure, too.
    const hasLasted = end.wasConnected && clock.monotonicMs() - startedMs >= LONGEST_PAUSE_MS
    failures = hasLasted ? 1 : failures + 1
    await clock.sleep(end.isRefusal ? LONGEST_PAUSE_MS : pauseMs(failures), signal)
  }
}
