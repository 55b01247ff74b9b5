/** Takes later reports of platforms that they could not deliver a reply. */
import type { DeliveryReport } from '@sluice/sdk'
import type { DeliveryOptions } from '../delivery-options.ts'

/** A report may arrive before the outcome of its send is stored: it is looked up again after this time. */
const AGAIN_MS = 5000

export type ReportOptions = Pick<DeliveryOptions, 'store' | 'clock' | 'log' | 'events' | 'telemetry' | 'scrub'>

/** Resolves once the reports are stored. Rejects with `unavailable` if the store cannot keep them; the platform then repeats them. */
export async function takeReports(
  options: ReportOptions,
  channel: string,
  reports: readonly DeliveryReport[],
  stopping: AbortSignal,
): Promise<void> {
  const { clock, log } = options
  const found = await Promise.all(reports.map((report) => takeReport(options, channel, report)))
  const others = reports.filter((_, at) => !found[at])
  if (others.length === 0) return
  const again = async (): Promise<void> => {
    await clock.sleep(AGAIN_MS, stopping)
    if (!stopping.aborted) await Promise.all(others.map((report) => takeReport(options, channel, report)))
  }
  again().catch((error: unknown) => log.error('report of a platform not stored', { channel, error }))
}

/** Resolves to false if no sent reply has the id of the report, such as one of another program. */
async function takeReport(
  { store, clock, log, events, telemetry, scrub }: ReportOptions,
  channel: string,
  { message, error: said }: DeliveryReport,
): Promise<boolean> {
  const error = `The platform reported later that it did not deliver it: ${scrub(said)}`
  const number = await store.outbox.undelivered(channel, message, { error, atMs: clock.nowMs() })
  if (number === undefined) return false
  log.error('reply not delivered', { channel, outbox: number, error, see: `sluice outbox show ${number}` })
  events.emit({ type: 'delivery', direction: 'outbound', channel, number, state: 'dead', error })
  telemetry.observe({ kind: 'reply', channel, what: 'undelivered' })
  return true
}
