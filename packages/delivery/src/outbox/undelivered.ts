/** Takes later reports of platforms that they could not deliver a reply. */
import type { DeliveryReport } from '@sluice/sdk'
import type { DeliveryOptions } from '../delivery-options.ts'

/** A report may arrive before the outcome of its send is stored: it is looked up again after each of these times. */
const AGAIN_MS: readonly number[] = [500, 5000, 60_000]

export type ReportOptions = Pick<DeliveryOptions, 'store' | 'clock' | 'log' | 'events' | 'telemetry' | 'scrub'>

/** Resolves once the reports are stored. Rejects with `unavailable` if the store cannot keep them; the platform then repeats them. */
export async function takeReports(
  options: ReportOptions,
  channel: string,
  reports: readonly DeliveryReport[],
  stopping: AbortSignal,
): Promise<void> {
  const { clock, log } = options
  const others = await notFound(options, channel, reports)
  const again = async (): Promise<void> => {
    let left = others
    for (const ms of AGAIN_MS) {
      if (left.length === 0) return
      await clock.sleep(ms, stopping)
      if (stopping.aborted) return
      try {
        left = await notFound(options, channel, left)
      } catch (error) {
        log.error('report of a platform not stored', { channel, error })
      }
    }
  }
  void again()
}

/** Takes the reports. Resolves to those about no reply that is recorded as sent. */
async function notFound(options: ReportOptions, channel: string, reports: readonly DeliveryReport[]): Promise<readonly DeliveryReport[]> {
  const found = await Promise.all(reports.map((report) => takeReport(options, channel, report)))
  return reports.filter((_, at) => !found[at])
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
