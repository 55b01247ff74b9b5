/** Sends a message as several messages of the platform, for platforms with one file in each. */
import { AppError, type Clock, type Sent } from '@sluice/sdk'

export interface PartsOptions {
  readonly clock: Pick<Clock, 'sleep'>
  readonly signal: AbortSignal
}

/** Limits for the parts after the first, which the outbox cannot send again on their own. */
const ATTEMPTS_MAX = 3
const WAIT_SECS_MAX = 15

/**
 * Sends the parts in their order, and returns the first one. Waits for short rate limits of later parts itself, because a retry of the
 * whole message would send the first part twice; any other failure of a later part throws `upstream`.
 */
export async function sendParts(parts: readonly (() => Promise<Sent>)[], options: PartsOptions): Promise<Sent> {
  const [first, ...rest] = parts
  if (!first) throw new AppError('invalid_request', 'The message has neither a text nor an attachment')
  const sent = await first()
  for (const [index, part] of rest.entries()) await sendLaterPart(part, index + 2, options)
  return sent
}

async function sendLaterPart(part: () => Promise<Sent>, number: number, { clock, signal }: PartsOptions): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      await part()
      return
    } catch (error) {
      if (!(error instanceof AppError)) throw error
      const waitSecs = error.code === 'rate_limited' ? (error.retryAfterSecs ?? 1) : Number.POSITIVE_INFINITY
      if (waitSecs > WAIT_SECS_MAX || attempt === ATTEMPTS_MAX || signal.aborted)
        throw new AppError('upstream', `The message was sent without part ${number} and later parts: ${error.message}`)
      await clock.sleep(waitSecs * 1000, signal)
    }
  }
}
