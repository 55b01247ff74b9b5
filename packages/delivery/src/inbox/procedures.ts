/** Gives a message to the procedures that have a trigger for its path, instead of to the agent. */
import type { LimitedClient } from '@sluice/agent'
import { ageMs as ageOf } from '@sluice/kit'
import { AppError, type Channel, type Clock, type Inbound, type Logger, type SopDispatch, type Store } from '@sluice/sdk'
import type { Procedures } from '../delivery-options.ts'

/** Whether a loaded procedure has a trigger for the path of the channel's webhook. */
export function isProcedureEvent(procedures: Procedures | undefined, { webhook }: Channel): boolean {
  return webhook !== undefined && procedures?.matches('webhook', webhook.path) === true
}

/** For `ageMs`, no procedure has had room for the message. */
export interface WithoutRoom {
  readonly ageMs: number
  readonly reason: string
}

/** Every procedure has skipped the message. */
export interface Skipped {
  readonly skippedFor: string
}

export interface FiringOptions {
  readonly store: Pick<Store, 'inbox'>
  readonly procedures: Procedures | undefined
  readonly log: Logger
  readonly clock: Pick<Clock, 'monotonicMs' | 'nowMs'>
}

/**
 * Resolves to true when procedures have taken the message, which is then done in the same commit: after a crash nothing starts
 * twice, and a replayed message is an event like the first. False: no trigger takes a message of this principal, or no condition fits.
 * Otherwise the message is as it was.
 */
export async function fireProcedures(
  { store, procedures, log, clock }: FiringOptions,
  channel: Channel,
  number: number,
  message: Inbound,
  { client, standing }: LimitedClient,
): Promise<boolean | WithoutRoom | Skipped> {
  const path = channel.webhook?.path
  if (path === undefined || !procedures || !isProcedureEvent(procedures, channel)) return false
  const entry = await store.inbox.get(number)
  if (entry?.endedAtMs !== null) return false
  const { id, account, sender, to, text, sentAtMs, attachments, quoted, forwarded, things } = message
  const event = {
    source: 'webhook',
    topic: path,
    payload: JSON.stringify({ channel: channel.name, id, account, sender, to, text, sentAtMs, attachments, quoted, forwarded, things }),
    atMs: entry.receivedAtMs,
    by: `${channel.name}:${sender}`,
    standing,
    starter: client,
    ...(entry.trace !== undefined && { trace: entry.trace }),
    origin: { channel: channel.name, account, to, sender },
  } as const
  let dispatched: readonly SopDispatch[]
  try {
    dispatched = await procedures.fire(event, { inbox: number, repeats: true })
  } catch (error) {
    if (!(error instanceof AppError) || error.code !== 'unavailable' || error.retryAfterSecs === undefined) throw error
    return { ageMs: ageOf(clock, entry.receivedAtMs), reason: error.message }
  }
  if (dispatched.length === 0) return false
  const skipped = dispatched.flatMap((one) => (one.status === 'skipped' ? [`${one.sop}: ${one.reason}`] : []))
  if (skipped.length === dispatched.length) return { skippedFor: skipped.join('; ') }
  log.info('procedures took a message', { channel: channel.name, inbox: number, dispatched: dispatched.length })
  return true
}
