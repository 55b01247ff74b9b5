/** Checks that every message of a cut arrives once and is answered once, in order, or that a report of a gap names its time. Pure. */
import { countsOf, type History, nameOf, reporter, type StoreView, type Violation } from '../history.ts'
import { countOutOfOrder, type Written } from '../ordered-traffic.ts'

/** A `channel_gap` event. */
export interface SeenGap {
  readonly channel: string
  readonly sinceMs: number | undefined
  /** When the event was seen. */
  readonly atMs: number
  readonly why: string
}

export interface LinkRow {
  readonly channel: string
  /** Messages that were written during the cut. */
  readonly written: number
  readonly arrived: number
  /** Messages of the cut that did not arrive, but whose time a gap names. */
  readonly inGap: number
  /** Neither arrived nor named by a gap. */
  readonly lost: number
  /** Answered more than once, or asked of the model more than once. */
  readonly doubled: number
  readonly answeredOnce: number
  readonly outOfOrder: number
  /** Replies that may have been sent: the daemon cannot know it. */
  readonly ambiguous: number
  readonly gaps: readonly string[]
}

export interface LinkFindings {
  readonly rows: readonly LinkRow[]
  readonly violations: readonly Violation[]
}

export interface LinkEvidence {
  readonly history: History
  readonly store: StoreView
  readonly written: readonly Written[]
  readonly gaps: readonly SeenGap[]
}

export function checkLinks({ history, store, written, gaps }: LinkEvidence): LinkFindings {
  const { found, report } = reporter()
  const inbox = countsOf(store.inbox.map(({ channel, id }) => `${channel} ${id}`))
  const answered = countsOf(store.sessions.flat())
  const delivered = countsOf(history.delivered.flatMap(({ parts }) => parts.map(nameOf)))
  const asked = countsOf(history.seen.flatMap((event) => (event.type === 'asked' ? [event.mark] : [])))
  const states = new Map(store.outbox.flatMap(({ parts, state }) => parts.map((part) => [nameOf(part), state] as const)))
  const isCovered = ({ message, atMs }: Written): boolean =>
    gaps.some(({ channel, sinceMs, atMs: endMs }) => channel === message.kind && sinceMs !== undefined && sinceMs <= atMs && atMs <= endMs)

  const row = (channel: string, all: readonly Written[]): LinkRow => {
    const counts = { written: 0, arrived: 0, inGap: 0, lost: 0, doubled: 0, answeredOnce: 0, ambiguous: 0 }
    for (const one of all) {
      const { mark, id } = one.message
      const name = nameOf({ mark, part: 1 })
      const [rows, turns, requests] = [inbox.get(`${channel} ${id}`) ?? 0, answered.get(mark) ?? 0, asked.get(mark) ?? 0]
      const replies = delivered.get(name) ?? 0
      const isOfCut = one.phase === 'during'
      if (isOfCut) counts.written += 1
      if (rows === 0) {
        if (isOfCut && isCovered(one)) counts.inGap += 1
        else {
          counts.lost += 1
          report('link', `${mark} of ${channel}, written ${one.phase} the cut, did not arrive, and no gap names its time`)
        }
        continue
      }
      if (isOfCut) counts.arrived += 1
      if (rows > 1 || turns > 1 || requests > 1 || replies > 1) {
        counts.doubled += 1
        report('link', `${mark} of ${channel} has ${rows} rows, ${turns} turns, ${requests} requests to the model, and ${replies} replies`)
      }
      const isAmbiguous = states.get(name) === 'ambiguous'
      if (isAmbiguous) counts.ambiguous += 1
      if (isOfCut && replies === 1) counts.answeredOnce += 1
      // The request of a reply that was sent when the network broke may have got lost or not.
      const isExcused = isAmbiguous && one.phase === 'at'
      if (replies === 0 && !isExcused)
        report(
          'link',
          `${mark} of ${channel}, written ${one.phase} the cut, has no reply on the platform: ${states.get(name) ?? 'none queued'}`,
        )
    }
    const outOfOrder = countOutOfOrder(all, history)
    if (outOfOrder > 0) report('link', `${outOfOrder} messages of ${channel} ran before an earlier one of their sender`)
    const named = gaps.filter((gap) => gap.channel === channel)
    for (const gap of named) if (gap.sinceMs === undefined) report('link', `a gap of ${channel} names no time: ${gap.why}`)
    return { channel, ...counts, outOfOrder, gaps: named.map(({ why }) => why) }
  }
  const rows = [...Map.groupBy(written, ({ message }) => message.kind)].map(([channel, all]) => row(channel, all))
  return { rows, violations: found }
}
