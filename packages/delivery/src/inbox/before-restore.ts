/** Holds back messages that were sent before a backup was restored: they may have been answered after the backup was made. */
import type { Inbound, OwnedStore } from '@sluice/sdk'

/** The verdict of messages of the daemon itself; `startTurn` has a rule of its own for them. */
const OWN = 'reminder'

/**
 * Returns why a message that a platform repeats after a restore is given up, with its attempts. Undefined for a message that may run: one
 * that was sent later or has no time, and one that an operator replays. Asked before each attempt, so that no crash gets around it.
 */
export async function heldBack(
  owned: OwnedStore,
  number: number,
  { sentAtMs }: Inbound,
  restoredAtMs: number,
): Promise<{ readonly error: string; readonly attempts: number } | undefined> {
  if (sentAtMs === undefined || sentAtMs > restoredAtMs) return undefined
  const entry = await owned.inbox.get(number)
  if (!entry || entry.endedAtMs !== null || entry.verdict === OWN) return undefined
  if ((await owned.admissions.loopState(number))?.isAdmitted) return undefined
  const error = `It was sent before a backup was restored on ${new Date(restoredAtMs).toISOString()}, and may have been answered then.`
  return { error, attempts: entry.attempts }
}
