/** Reads a mailbox from its cursor to its end, page by page; the cursor follows only what is durably handed over (§2.3). */
import type { Host } from '@sluice/sdk'
import type { HandOver } from './hand-over.ts'
import type { MailApi, Subscription } from './mail-api.ts'
import type { Progress } from './progress.ts'
import { resync } from './resync.ts'

export interface CatchUpOptions {
  readonly host: Pick<Host, 'clock' | 'log'>
  readonly api: MailApi
  readonly subscription: Subscription
  readonly handOver: HandOver
  readonly progress: Progress
  /** The history id of the mailbox's newest change. */
  now(signal: AbortSignal): Promise<bigint>
}

/** In one go; the rest follows with the next look at the mailbox. */
const PAGES_MAX = 1000

/** Rejects where it got stuck; what was handed over before is not brought again. */
export async function catchUp(options: CatchUpOptions, signal: AbortSignal): Promise<void> {
  try {
    await readOn(options, signal)
  } catch (error) {
    // Where this fails as well, it is remembered until the process ends; the inbox drops what comes again.
    await options.progress.save().catch(() => undefined)
    throw error
  }
}

async function readOn(options: CatchUpOptions, signal: AbortSignal): Promise<void> {
  const { host, api, handOver, progress } = options
  const from = progress.cursor()
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
    if (!found) return resync(options, signal)
    // What arrives while pages are read may be on none of them, so the end is that of the first.
    end ??= found.now
    const ids = new Set(found.mails.flatMap((mail) => (isWanted(mail.labels) ? [mail.id] : [])))
    for (const id of ids) if (!progress.knows(id)) progress.note(id, await handOver(id, signal))
    page = found.next
    if (page === undefined) return progress.moveTo(end, atMs)
    if (found.pageEnd !== undefined) await progress.moveTo(found.pageEnd, from.atMs)
  }
}
