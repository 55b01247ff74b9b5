/** Reads a mailbox from its cursor to its end, page by page; the cursor follows only what is durably handed over (§2.3). */
import type { Host } from '@sluice/sdk'
import type { Cursor } from './cursor.ts'
import type { HandOver } from './hand-over.ts'
import type { MailApi, Subscription } from './mail-api.ts'
import { resync } from './resync.ts'

export interface CatchUpOptions {
  readonly host: Pick<Host, 'clock' | 'log'>
  readonly api: MailApi
  readonly subscription: Subscription
  readonly handOver: HandOver
  /** The history id of the mailbox's newest change. */
  now(signal: AbortSignal): Promise<bigint>
  keep(cursor: Cursor): Promise<void>
}

/** In one go; the rest follows with the next look at the mailbox. */
const PAGES_MAX = 1000

/** Rejects where it got stuck; what was handed over before stays behind the cursor, but for the page under way. */
export async function catchUp(from: Cursor, options: CatchUpOptions, signal: AbortSignal): Promise<void> {
  const { host, api, handOver, keep } = options
  const { labels } = options.subscription
  // The API filters by one label alone; of several, what each mail has decides.
  const [label, another] = labels
  const isWanted = (its: readonly string[] | undefined): boolean => !another || !its || labels.some((one) => its.includes(one))
  const atMs = host.clock.nowMs()
  let end: bigint | undefined
  let page: string | undefined
  for (let count = 0; count < PAGES_MAX; count++) {
    const query = { since: from.historyId, ...(label && !another && { label }), ...(page !== undefined && { page }) }
    const found = await api.history(query, signal)
    if (!found) return resync(from, options, signal)
    // What arrives while pages are read may be on none of them, so the end is that of the first.
    end ??= found.now
    const ids = new Set(found.mails.flatMap((mail) => (isWanted(mail.labels) ? [mail.id] : [])))
    for (const id of ids) await handOver(id, signal)
    page = found.next
    if (page === undefined) return keep({ historyId: end, atMs })
    if (found.pageEnd !== undefined) await keep({ historyId: found.pageEnd, atMs: from.atMs })
  }
}
