/** A mailbox whose cursor the provider no longer knows: everything that came since is listed anew, and what is known is dropped as known. */
import type { CatchUpOptions } from './catch-up.ts'
import { MARGIN_MS } from './progress.ts'

const DAY_MS = 24 * 3_600_000
/** At least so far back, which is well within the time that ids are remembered. */
const OVERLAP_MS = 2 * DAY_MS
const LONGEST_MS = 30 * DAY_MS
/** Of each label. */
const PAGES_MAX = 100
/** So many mails are handed over between two savings. */
const SAVE_AFTER = 100

export async function resync(options: CatchUpOptions, signal: AbortSignal): Promise<void> {
  const { host, handOver, now, progress } = options
  const lost = progress.cursor()
  const nowMs = host.clock.nowMs()
  // Before the listing: what comes while it is read is behind the new cursor.
  const historyId = await now(signal)
  const sinceMs = Math.max(lost.setUpAtMs, nowMs - LONGEST_MS, Math.min(nowMs - OVERLAP_MS, lost.atMs - MARGIN_MS))
  const listed = await listSince(sinceMs, options, signal)
  const ids = listed.filter((id) => !progress.knows(id))
  host.log.warn('the provider no longer knows how far the mailbox was read; its latest mails are listed instead', { mails: ids.length })
  // Ids that went backwards, as of another mailbox, compare with nothing.
  const unchanged = historyId > lost.historyId ? { unchangedSince: lost.historyId } : {}
  for (const [at, id] of ids.entries()) {
    progress.note(id, await handOver(id, signal, { ...unchanged, sinceMs: lost.setUpAtMs }))
    if (at % SAVE_AFTER === SAVE_AFTER - 1) await progress.save()
  }
  await progress.moveTo(historyId, nowMs)
}

/** Oldest first. */
async function listSince(sinceMs: number, { host, api, subscription: { labels } }: CatchUpOptions, signal: AbortSignal): Promise<string[]> {
  const ids = new Set<string>()
  for (const label of labels.length > 0 ? labels : [undefined]) {
    let page: string | undefined
    for (let count = 0; count === 0 || page !== undefined; count++) {
      if (count === PAGES_MAX) {
        host.log.error('the mailbox has more new mails than are listed; the oldest of them are left out')
        break
      }
      const found = await api.list({ sinceMs, ...(label !== undefined && { label }), ...(page !== undefined && { page }) }, signal)
      for (const id of found.ids) ids.add(id)
      page = found.next
    }
  }
  return [...ids].reverse()
}
