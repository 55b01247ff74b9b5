/** Holds back messages that were sent before a backup was restored: they may have been answered after the backup was made. */
import type { Inbound, OwnedStore } from '@sluice/sdk'

/** The verdict of messages of the daemon itself; `startTurn` has a rule of its own for them. */
const OWN = 'reminder'

/**
 * Makes a message that a platform repeats after a restore a dead letter. Resolves to false for a message that may run: one that was
 * sent later or has no time, and one that an operator replays. Asked before each attempt, so that no crash gets around it.
 */
export async function holdBackOld(
  owned: OwnedStore,
  number: number,
  { sentAtMs }: Inbound,
  { restoredAtMs, nowMs }: { readonly restoredAtMs: number; readonly nowMs: number },
): Promise<boolean> {
  if (sentAtMs === undefined || sentAtMs > restoredAtMs) return false
  const entry = await owned.inbox.get(number)
  if (!entry || entry.endedAtMs !== null || entry.verdict === OWN) return false
  if ((await owned.admissions.loopState(number))?.isAdmitted) return false
  const error = `It was sent before a backup was restored on ${new Date(restoredAtMs).toISOString()}, and may have been answered then.`
  await owned.inbox.markDead(number, { error, atMs: nowMs })
  return true
}
