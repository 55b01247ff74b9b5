/** Counts the unfinished and failed work in the store, for the status and the metrics. */
import type { Backlog, Store } from '@sluice/sdk'

/** Reads only rows of unfinished and failed work. Throws `unavailable` when the store cannot be read. */
export async function readBacklog(
  { inbox, outbox, approvals, sops }: Pick<Store, 'inbox' | 'outbox' | 'approvals' | 'sops'>,
  nowMs: number,
): Promise<Backlog> {
  const [messages, replies, decisions, oldestMessageMs, oldestReplyMs, runs] = await Promise.all([
    inbox.counts(),
    outbox.counts(),
    approvals.counts(),
    inbox.oldestWaitingMs(),
    outbox.oldestWaitingMs(),
    sops.waiting(),
  ])
  const secsSince = (ms: number | null): number | null => (ms === null ? null : Math.max(0, Math.floor((nowMs - ms) / 1000)))
  return {
    messagesPending: messages.pending + messages.running,
    oldestMessageSecs: secsSince(oldestMessageMs),
    repliesPending: replies.queued + replies.sending + replies.failed,
    oldestReplySecs: secsSince(oldestReplyMs),
    messagesDead: messages.dead,
    repliesDead: replies.dead,
    repliesAmbiguous: replies.ambiguous,
    approvalsPending: decisions.pending,
    runsWaiting: runs.length,
    oldestRunSecs: secsSince(runs.length === 0 ? null : Math.min(...runs.map(({ sinceMs }) => sinceMs))),
  }
}
