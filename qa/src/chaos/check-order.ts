/** Checks the order inside each session: turns as messages were acknowledged and numbered, replies as their turns, parts as they read. */
import { type History, laneOf, nameOf, type StoreView, type Violation } from './history.ts'

type Report = (detail: string) => void
type Numbers = ReadonlyMap<string, number>

/** Positions in the list of events. */
export interface Times {
  posted?: number
  acked?: number
  askedFirst?: number
  askedLast?: number
}

export function checkOrder(history: History, store: StoreView): Violation[] {
  const found: Violation[] = []
  const report: Report = (detail) => void found.push({ rule: 'order', detail })
  const times = timesOf(history)
  const timeOf = (mark: string): Times => times.get(mark) ?? {}
  const lanes = new Map(history.messages.map((message) => [message.mark, laneOf(message)]))
  const inbox = new Map(store.inbox.map(({ channel, id, number }) => [`${channel} ${id}`, number]))
  const numbers = new Map(history.messages.flatMap(({ mark, kind, id }) => pair(mark, inbox.get(`${kind} ${id}`))))

  const checkTurns = (marks: readonly string[]): void => {
    checkAcknowledged(marks, timeOf, report)
    checkAscending(marks, numbers, report)
  }
  for (const session of store.sessions) {
    checkTurns(session)
    const [one, other] = new Set(session.map((mark) => lanes.get(mark)))
    if (other !== undefined) report(`one session answers both ${one} and ${other}`)
  }
  const begun = [...times].flatMap(([mark, { askedFirst }]) => pair(mark, askedFirst)).toSorted(([, a], [, b]) => a - b)
  for (const lane of Map.groupBy(begun, ([mark]) => lanes.get(mark)).values()) {
    const marks = lane.map(([mark]) => mark)
    checkTurns(marks)
    checkOneAtATime(marks, timeOf, report)
  }

  const outbox = new Map(store.outbox.flatMap(({ number, parts }) => parts.map((part) => [nameOf(part), number] as const)))
  const sent = history.seen.flatMap((event) => (event.type === 'sending' ? event.parts : []))
  for (const lane of Map.groupBy(sent, ({ mark }) => lanes.get(mark)).values()) checkAscending(lane.map(nameOf), outbox, report)
  return found
}

export function timesOf({ seen }: Pick<History, 'seen'>): Map<string, Times> {
  const all = new Map<string, Times>()
  const at = (mark: string): Times => {
    const times = all.get(mark) ?? {}
    all.set(mark, times)
    return times
  }
  for (const [position, event] of seen.entries()) {
    if (event.type === 'posted') for (const mark of event.marks) at(mark).posted ??= position
    if (event.type === 'acked') for (const mark of event.marks) at(mark).acked ??= position
    // What failed is over, and its repeat is another request.
    if (event.type === 'failed') all.delete(event.mark)
    if (event.type !== 'asked') continue
    at(event.mark).askedFirst ??= position
    at(event.mark).askedLast = position
  }
  return all
}

/** No message runs before one that had been acknowledged when it was first posted. */
export function checkAcknowledged(marks: readonly string[], timeOf: (mark: string) => Times, report: Report): void {
  let earliest = { acked: Number.POSITIVE_INFINITY, mark: '' }
  for (const mark of marks.toReversed()) {
    const { posted = 0, acked = Number.POSITIVE_INFINITY } = timeOf(mark)
    if (earliest.acked < posted) report(`${mark} ran before ${earliest.mark}, which was acknowledged before ${mark} was posted`)
    if (acked < earliest.acked) earliest = { acked, mark }
  }
}

/** A turn begins after the turn before it in its session has ended. */
function checkOneAtATime(marks: readonly string[], timeOf: (mark: string) => Times, report: Report): void {
  for (const [index, mark] of marks.entries()) {
    const before = marks[index - 1]
    if (before === undefined) continue
    const [{ askedLast = 0 }, { askedFirst = 0 }] = [timeOf(before), timeOf(mark)]
    if (askedLast > askedFirst) report(`two turns of a session overlap: ${before} was still running when ${mark} began`)
  }
}

/** Names without a number are skipped. */
export function checkAscending(names: readonly string[], numbers: Numbers, report: Report): void {
  const numbered = names.flatMap((name) => pair(name, numbers.get(name)))
  for (const [index, [name, number]] of numbered.entries()) {
    const [before = '', last = 0] = numbered[index - 1] ?? []
    if (last > number) report(`${before} (number ${last}) came before ${name} (number ${number})`)
  }
}

const pair = <Value>(name: string, value: Value | undefined): [string, Value][] => (value === undefined ? [] : [[name, value]])
