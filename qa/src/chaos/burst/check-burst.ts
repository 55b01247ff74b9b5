/** Checks that no acknowledged message of a burst is lost, doubled or out of order. Pure. */
import { countsOf, type History, nameOf, reporter, type StoreView, type Violation } from '../history.ts'
import { countOutOfOrder, type Written } from '../ordered-traffic.ts'

export interface BurstRow {
  readonly channel: string
  readonly acknowledged: number
  /** Acknowledged, and without exactly one turn that ended. */
  readonly lost: number
  /** With several rows in the inbox, several ended turns or several replies. */
  readonly doubled: number
  readonly outOfOrder: number
  readonly answered: number
  /** Replies that were being sent at a kill. The daemon cannot know whether the platform has them, so it does not send them again. */
  readonly ambiguous: number
}

export interface BurstEvidence {
  readonly channel: string
  readonly history: History
  readonly store: StoreView
  readonly written: readonly Written[]
  readonly acknowledged: ReadonlySet<string>
}

export function checkBurst({ channel, history, store, written, acknowledged }: BurstEvidence): {
  readonly row: BurstRow
  readonly violations: readonly Violation[]
} {
  const { found, report } = reporter()
  const inbox = countsOf(store.inbox.map(({ channel: name, id }) => `${name} ${id}`))
  const turns = countsOf(store.sessions.flat())
  const delivered = countsOf(history.delivered.flatMap(({ parts }) => parts.map(nameOf)))
  const states = new Map(store.outbox.flatMap(({ parts, state }) => parts.map((part) => [nameOf(part), state] as const)))
  const counts = { acknowledged: acknowledged.size, lost: 0, doubled: 0, answered: 0, ambiguous: 0 }
  for (const { message } of written) {
    const { mark, id, kind, parts } = message
    const name = nameOf({ mark, part: 1 })
    const [rows, ended, replies] = [inbox.get(`${kind} ${id}`) ?? 0, turns.get(mark) ?? 0, delivered.get(name) ?? 0]
    if (acknowledged.has(mark) && ended === 0) {
      counts.lost += 1
      report('burst', `${mark} was acknowledged, but no turn answers it`)
    }
    if (rows > 1 || ended > 1 || replies > 1) {
      counts.doubled += 1
      report('burst', `${mark} has ${rows} rows in the inbox, ${ended} ended turns and ${replies} replies`)
    }
    if (replies === 1) counts.answered += 1
    if (states.get(name) === 'ambiguous') counts.ambiguous += 1
    else if (parts > 0 && ended > 0 && replies === 0) report('burst', `the reply to ${mark} is ${states.get(name) ?? 'missing'}`)
  }
  const outOfOrder = countOutOfOrder(written, history)
  if (outOfOrder > 0) report('burst', `${outOfOrder} messages ran before an earlier one of their sender`)
  return { row: { channel, ...counts, outOfOrder }, violations: found }
}
