/** Begins a new conversation after a time without turns, or at an hour of the day. It takes effect when the next turn begins. */
import type { Reset } from '@sluice/config'
import type { Clock, OwnedStore, StartedMessage } from '@sluice/sdk'
import { endLateChanges } from './late-changes.ts'
import { beginConversation } from './new-conversation.ts'

export interface ResetOptions {
  readonly clock: Pick<Clock, 'nowMs'>
  readonly reset: Reset | undefined
  /** Whether a question waits in the conversation, whose answer belongs to the earlier messages. */
  isAsking(): boolean
}

const HOUR_MS = 3_600_000

/** Call it before the turn of a message reads the conversation. The earlier messages stay stored and are listed as before. Resolves to whether it began a new one. */
export async function resetIfDue(
  { clock, reset, isAsking }: ResetOptions,
  owned: OwnedStore,
  { session, number }: Pick<StartedMessage, 'session' | 'number'>,
): Promise<boolean> {
  if (!reset) return false
  const row = await owned.sessions.get(session)
  const nowMs = clock.nowMs()
  if (!row || !(await isDue(reset, row.lastActiveAtMs, nowMs)) || isAsking()) return false
  await beginConversation(owned.sessions, session, nowMs)
  await endLateChanges(owned, session, number)
  return true
}

async function isDue({ idleHours, dailyAt, timezone }: Reset, lastActiveAtMs: number, nowMs: number): Promise<boolean> {
  if (idleHours !== undefined && nowMs - lastActiveAtMs >= idleHours * HOUR_MS) return true
  if (dailyAt === undefined) return false
  const { nextOccurrence } = await import('@sluice/kit/cron-expression')
  const [hour = 0, minute = 0] = dailyAt.split(':').map(Number)
  const zone = timezone ?? new Intl.DateTimeFormat().resolvedOptions().timeZone
  const next = nextOccurrence({ expression: `${minute} ${hour} * * *`, timezone: zone }, lastActiveAtMs)
  return next !== null && next <= nowMs
}
