/** Stores messages of platforms that never send a message again. */
import { type Deliver, errorText, type Host, type Inbound } from '@sluice/sdk'

const RETRY_MS = 1000
const RETRY_MS_MAX = 30_000

/**
 * Delivers a message until it is durable, however long the store fails: the platform will not send it again. Resolves to false if
 * `signal` aborts while the store fails.
 */
export async function storePatiently(
  { log, clock }: Pick<Host, 'log' | 'clock'>,
  {
    channel,
    inbound,
    deliver,
    signal,
  }: { readonly channel: string; readonly inbound: Inbound; readonly deliver: Deliver; readonly signal: AbortSignal },
): Promise<boolean> {
  for (let delayMs = RETRY_MS; ; delayMs = Math.min(delayMs * 2, RETRY_MS_MAX)) {
    try {
      await deliver(inbound)
      return true
    } catch (error) {
      log.warn('message not stored, trying again', { channel, reason: errorText(error) })
      if (signal.aborted) return false
      await clock.sleep(delayMs, signal)
    }
  }
}
