/**
 * The rules of a run with several nodes. They are pure, like those of the crash run. Numbers are no order here: nodes store messages at the
 * same time, and a number may be given before an earlier one is committed. Turns may overlap in time when a node stops and goes on later,
 * because a database cannot hold back acts outside of it; its commits may not overlap.
 */
import { checkGates } from '../chaos/check-gates.ts'
import { checkAcknowledged, checkAscending, timesOf } from '../chaos/check-order.ts'
import {
  countsOf,
  type History,
  laneOf,
  nameOf,
  type OutboxSeen,
  type Report,
  reporter,
  type StoreView,
  type Violation,
} from '../chaos/history.ts'
import { replyOf } from '../chaos/marks.ts'
import type { Followed } from './follow-changes.ts'

/** Attempts after which an interrupted turn of `POST /webhook` fails. */
const DIRECT_ATTEMPTS_MAX = 5
/** The codes of a turn that no model answered. */
const AWAY = ['upstream', 'upstream_timeout']
/** By when every node follows a change. All nodes and the database share one machine here, which may be busy. */
const FOLLOW_MS_MAX = { revocation: 1_000, configuration: 2_000 }
const BUSY_MS_MAX = 500

export interface ClusterHistory extends History {
  /** The ids of events in the order in which each subscriber received them. */
  readonly events: readonly (readonly string[])[]
  readonly followed: readonly Followed[]
}

/** Returns the violations of all rules, or an empty list. */
export function checkCluster(history: ClusterHistory, store: StoreView): Violation[] {
  const { found, report } = reporter()
  checkKept(history, store, report)
  checkOnce(store, report)
  checkOrder(history, store, report)
  checkSends(history, store, report)
  checkEffects(history, store, report)
  checkDirect(history, store, report)
  checkFailed(history, store, report)
  for (const ids of history.events)
    for (const [id, times] of countsOf(ids)) if (times > 1) report('events', `a subscriber received the event ${id} ${times} times`)
  for (const { change, node, tookMs } of history.followed)
    if (tookMs === null || tookMs > FOLLOW_MS_MAX[change] + BUSY_MS_MAX)
      report(change, `${node} followed ${tookMs === null ? 'not at all' : `after ${Math.round(tookMs)} ms`}`)
  return [...found, ...checkGates(history, store)]
}

/** The states of a question whose turn may have been aborted. */
const OVER = ['cancelled', 'rejected']

/** Everything that was acknowledged is stored, and done in the end. */
function checkKept({ attemptsMax, messages, seen }: History, store: StoreView, report: Report): void {
  for (const problem of store.problems) report('file', problem)
  const acknowledged = new Set(seen.flatMap((event) => (event.type === 'acked' ? event.marks : [])))
  const rows = new Map(store.inbox.map((row) => [`${row.channel} ${row.id}`, row]))
  const answered = new Set(store.sessions.flat())
  // A turn that was aborted while a person was asked has no answer, and neither has the answer to a question.
  const withdrawn = new Set(store.questions.filter(({ state }) => OVER.includes(state)).map(({ mark }) => mark))
  for (const event of seen) {
    if (event.type === 'refused') report('accepted', `${event.marks.join(' ')} was refused with status ${event.status}`)
    if (event.type === 'unexpected') report('unexpected', event.detail)
  }
  for (const { mark, kind, id, gate } of messages) {
    if (!acknowledged.has(mark)) continue
    const row = rows.get(`${kind} ${id}`)
    if (row?.isAnswer || (row?.state === 'dead' && gate === 'withdrawn' && withdrawn.has(mark))) continue
    const isDone = kind === 'post' ? answered.has(mark) : row !== undefined && answered.has(mark)
    if (isDone) continue
    if (kind !== 'post' && !row) report('lost', `${mark} was acknowledged, but is not stored`)
    else if (row?.state !== 'dead' || row.attempts < attemptsMax)
      report('lost', `${mark} was acknowledged, but is ${row?.state ?? 'not answered'} in the end, after ${row?.attempts ?? 0} attempts`)
  }
  for (const mark of store.unfinished) report('lost', `the turn of ${mark} has not ended`)
}

/** Nothing is committed twice. */
function checkOnce({ inbox, sessions, outbox }: StoreView, report: Report): void {
  for (const [name, times] of countsOf(inbox.map(({ channel, id }) => `${channel} ${id}`)))
    if (times > 1) report('once', `${name} has ${times} rows in the inbox`)
  for (const [mark, times] of countsOf(sessions.flat())) if (times > 1) report('once', `${mark} appears ${times} times in its session`)
  for (const [name, times] of countsOf(outbox.flatMap(({ parts }) => parts.map(nameOf))))
    if (times > 1) report('once', `${name} is in the outbox ${times} times`)
}

/** Conversations keep the order of acknowledgements: as they are stored, as turns begin, and as replies are sent for the first time. */
function checkOrder(history: History, store: StoreView, report: Report): void {
  const times = timesOf(history)
  const timeOf = (mark: string) => times.get(mark) ?? {}
  const lanes = new Map(history.messages.map((message) => [message.mark, laneOf(message)]))
  const inOrder = (detail: string): void => report('order', detail)
  for (const session of store.sessions) {
    checkAcknowledged(session, timeOf, inOrder)
    const [one, other] = new Set(session.map((mark) => lanes.get(mark)))
    if (other !== undefined) report('order', `one session answers both ${one} and ${other}`)
  }
  const begun = [...times].flatMap(([mark, { askedFirst }]) => (askedFirst === undefined ? [] : [{ mark, askedFirst }]))
  for (const lane of Map.groupBy(
    begun.toSorted((a, b) => a.askedFirst - b.askedFirst),
    ({ mark }) => lanes.get(mark),
  ).values())
    checkAcknowledged(
      lane.map(({ mark }) => mark),
      timeOf,
      inOrder,
    )
  // A message that a stopped node sends late has an ambiguous row.
  const certain = store.outbox.filter(({ state }) => state === 'sent')
  const numbers = new Map(certain.flatMap(({ number, parts }) => parts.map((part) => [nameOf(part), number] as const)))
  const sent = history.seen.flatMap((event) => (event.type === 'sending' ? event.parts : []))
  for (const lane of Map.groupBy(sent, ({ mark }) => lanes.get(mark)).values()) checkAscending(lane.map(nameOf), numbers, inOrder)
}

/** Each reply is on the platform once, unless its row says that this is not known. */
function checkSends(history: History, store: StoreView, report: Report): void {
  const delivered = countsOf(history.delivered.flatMap(({ parts }) => parts.map(nameOf)))
  const rows = new Map(store.outbox.flatMap((row) => row.parts.map((part): [string, OutboxSeen] => [nameOf(part), row])))
  for (const [name, times] of delivered)
    if (times > 1 && rows.get(name)?.state !== 'ambiguous')
      report('sent once', `${name} was sent ${times} times, but is ${rows.get(name)?.state ?? 'not stored'}`)
  const answered = new Set(store.sessions.flat())
  for (const { mark, parts } of history.messages) {
    for (let part = 1; part <= (answered.has(mark) ? parts : 0); part++) {
      const name = nameOf({ mark, part })
      const row = rows.get(name)
      if (!row) report('sent', `${name} was never queued`)
      else if (row.state === 'sent' && !delivered.has(name))
        report('sent', `${name} is recorded as sent, but the platform does not have it`)
      else if (row.state === 'dead' && row.attempts < history.attemptsMax)
        report('sent', `${name} became a dead letter after only ${row.attempts} attempts`)
      else if (!['sent', 'ambiguous', 'dead'].includes(row.state)) report('sent', `${name} is ${row.state} in the end`)
    }
  }
}

/** A call is never made again once the model got its result. A direct request that failed may be repeated, which is another turn. */
function checkEffects({ seen }: History, { failed }: StoreView, report: Report): void {
  const settled = new Set<string>()
  const again = new Set(failed.map(({ mark }) => mark))
  for (const event of seen) {
    if (event.type === 'asked' && event.result === 'ran' && !again.has(event.mark)) settled.add(event.mark)
    else if (event.type === 'effect' && settled.has(event.mark)) report('effect', `the tool of ${event.mark} ran again after its result`)
  }
}

/**
 * A direct request may fail while the node that runs it has no way to the model, as the contract says: its sender learns it and repeats it,
 * and the repeat is answered. It may also have been interrupted too often. Nothing else is a reason.
 */
function checkFailed({ seen }: History, { failed }: StoreView, report: Report): void {
  const spent = new Set(failed.filter(({ attempts }) => attempts >= DIRECT_ATTEMPTS_MAX).map(({ mark }) => mark))
  const posted = new Map<string, number>()
  /** The nodes without the world, and the last position at which there was one. */
  const cut = new Set<string>()
  let lastCut = -1
  for (const [position, event] of seen.entries()) {
    if (event.type === 'world') cut[event.isCut ? 'add' : 'delete'](event.node)
    if (event.type === 'world' || cut.size > 0) lastCut = position
    for (const mark of event.type === 'posted' ? event.marks : []) if (!posted.has(mark)) posted.set(mark, position)
    if (event.type !== 'failed') continue
    const { mark, code } = event
    const wasAway = AWAY.includes(code) && lastCut >= (posted.get(mark) ?? position)
    if (!wasAway && !spent.has(mark)) report('accepted', `the request of ${mark} failed with ${code}, though every node had the model`)
    posted.delete(mark)
  }
}

/** All answers to a key name one turn, whose reply is that to its message. */
function checkDirect({ messages, seen }: History, { failed }: StoreView, report: Report): void {
  const answers = Map.groupBy(
    seen.flatMap((event) => (event.type === 'answered' ? event : [])),
    ({ mark }) => mark,
  )
  // The key of a turn that failed is free for another one.
  const again = new Set(failed.map(({ mark }) => mark))
  for (const message of messages) {
    const { mark } = message
    const own = answers.get(mark) ?? []
    const turns = new Set(own.map(({ turn }) => turn))
    if (turns.size > 1 && !again.has(mark)) report('one turn', `the key of ${mark} names the turns ${[...turns].join(' and ')}`)
    for (const { text } of own)
      if (text !== undefined && text !== replyOf(message)) report('one turn', `${mark} was answered with: ${text.slice(0, 80)}`)
  }
}
