/** Reads a mailbox from its cursor to its end. The cursor moves only past mails that are durably in the inbox. */
import type { Gap, Host } from '@sluice/sdk'
import type { MailApi, Subscription } from './mail-api.ts'
import type { MailIntake } from './mail-intake.ts'
import type { MailboxWatch } from './mailbox-watch.ts'
import { MARGIN_MS, type Progress } from './progress.ts'

export interface OpenMailbox {
  readonly host: Host
  readonly api: MailApi
  readonly subscription: Subscription
  readonly watch: MailboxWatch
  readonly intake: MailIntake
  readonly progress: Progress
  /** Called when mails are skipped. */
  onGap(gap: Gap): void
}

/** The most pages of a history that one call reads. The next check of the mailbox reads the rest. */
const HISTORY_PAGES_MAX = 1000
/** The most pages that are listed for each label. */
const LIST_PAGES_MAX = 100
const DAY_MS = 24 * 3_600_000
/** A listing goes back at least this far, which is well within the time that the inbox remembers message ids. */
const LIST_MS_MIN = 2 * DAY_MS
const LIST_MS_MAX = 30 * DAY_MS
/** How many listed mails are delivered between two saves. */
const SAVE_EVERY = 100

/** Delivers all mails after the cursor. Rejects at the first mail that fails; mails delivered before it are not delivered again. */
export async function catchUp(mailbox: OpenMailbox, signal: AbortSignal): Promise<void> {
  try {
    await readHistory(mailbox, signal)
  } catch (error) {
    // If this save fails as well, the progress is known until the process ends, and the inbox drops repeated mails.
    await mailbox.progress.save().catch(() => undefined)
    throw error
  }
}

async function readHistory(mailbox: OpenMailbox, signal: AbortSignal): Promise<void> {
  const { host, api, intake, progress, subscription } = mailbox
  const from = progress.cursor
  const atMs = host.clock.nowMs()
  const [label, anotherLabel] = subscription.labels
  // The API filters by one label only.
  const filter = label && !anotherLabel ? { label } : {}
  let end: bigint | undefined
  let page: string | undefined
  for (let count = 0; count < HISTORY_PAGES_MAX; count++) {
    const found = await api.history({ since: from.historyId, ...filter, ...(page !== undefined && { page }) }, signal)
    if (!found) return listMissedMails(mailbox, signal)
    // A mail that arrives while pages are read may be on none of them, so the first page defines the end.
    end ??= found.newest
    const ids = new Set(found.mails.filter(({ labels }) => isWanted(labels, subscription)).map(({ id }) => id))
    for (const id of ids) if (!progress.isDelivered(id)) progress.markDelivered(id, await intake.take(id, signal))
    page = found.next
    if (page === undefined) return progress.moveTo(end, atMs)
    if (found.pageEnd !== undefined) await progress.moveTo(found.pageEnd, from.atMs)
  }
}

/** With several labels the channel filters itself. A mail without stated labels passes. */
const isWanted = (mailLabels: readonly string[] | undefined, { labels }: Subscription): boolean =>
  labels.length < 2 || !mailLabels || labels.some((label) => mailLabels.includes(label))

/** Lists the mails since the cursor when the API no longer knows its history id, and delivers the missing ones. */
async function listMissedMails(mailbox: OpenMailbox, signal: AbortSignal): Promise<void> {
  const { host, intake, progress, watch, onGap } = mailbox
  const lost = progress.cursor
  const nowMs = host.clock.nowMs()
  // The new cursor is taken before the listing, so that it precedes mails that arrive meanwhile.
  const historyId = await watch.newestHistoryId(signal)
  const sinceMs = Math.max(lost.setUpAtMs, nowMs - LIST_MS_MAX, Math.min(nowMs - LIST_MS_MIN, lost.atMs - MARGIN_MS))
  if (lost.atMs < sinceMs) onGap({ sinceMs: lost.atMs, why: 'the mailbox was not read for 30 days; older mails are skipped' })
  const listed = await listSince(sinceMs, mailbox, signal)
  const ids = listed.filter((id) => !progress.isDelivered(id))
  host.log.warn('mailbox history expired; listing recent mails instead', { mails: ids.length })
  // History ids that are lower than before belong to another mailbox and cannot be compared.
  const unchanged = historyId > lost.historyId ? { unchangedSince: lost.historyId } : {}
  for (const [index, id] of ids.entries()) {
    progress.markDelivered(id, await intake.take(id, signal, { ...unchanged, sinceMs: lost.setUpAtMs }))
    if (index % SAVE_EVERY === SAVE_EVERY - 1) await progress.save()
  }
  await progress.moveTo(historyId, nowMs)
}

/** Returns the ids of mails since a time, oldest first. */
async function listSince(sinceMs: number, { api, subscription: { labels }, onGap }: OpenMailbox, signal: AbortSignal): Promise<string[]> {
  const ids = new Set<string>()
  for (const label of labels.length > 0 ? labels : [undefined]) {
    let page: string | undefined
    for (let count = 0; count === 0 || page !== undefined; count++) {
      if (count === LIST_PAGES_MAX) {
        onGap({ sinceMs, why: 'the mailbox has too many new mails; the oldest are skipped' })
        break
      }
      const found = await api.list({ sinceMs, ...(label !== undefined && { label }), ...(page !== undefined && { page }) }, signal)
      for (const id of found.ids) ids.add(id)
      page = found.next
    }
  }
  return [...ids].reverse()
}
