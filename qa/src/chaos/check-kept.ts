/** What was acknowledged is there: at once, once, and done in the end. And the file is whole. */
import { countsOf } from './counts-of.ts'
import type { History, Message, StoreView, Violation } from './history.ts'

/** So often a turn of `POST /webhook` is started that never reaches its end. */
const WEBHOOK_STARTS_MAX = 5

export function checkKept({ attemptsMax, messages, seen }: History, store: StoreView): Violation[] {
  const found: Violation[] = []
  const tell = (rule: string, detail: string) => void found.push({ rule, detail })
  const byMark = new Map(messages.map((message) => [message.mark, message]))
  const acked = new Set<string>()
  /** How many kills each message has lived through since it was acknowledged. */
  let kills = 0
  const killsBefore = new Map<string, number>()

  for (const event of seen) {
    if (event.type === 'ended' && event.by === 'SIGKILL') kills += 1
    if (event.type === 'ended' && event.by === 'SIGTERM' && event.code !== 0) tell('stop', `SIGTERM ended the daemon with ${event.code}`)
    if (event.type === 'refused') tell('taken', `${event.marks.join(' ')} was answered ${event.status}`)
    if (event.type === 'nonsense') tell('sense', event.detail)
    if (event.type === 'acked') {
      for (const mark of event.marks) {
        acked.add(mark)
        if (!killsBefore.has(mark)) killsBefore.set(mark, kills)
      }
    }
    if (event.type === 'inspected') {
      const kept = new Set(event.kept)
      for (const mark of acked)
        if (!kept.has(mark) && isPushed(byMark.get(mark))) tell('durable', `${mark} was acknowledged and is not kept`)
      for (const problem of event.problems) tell('file', problem)
    }
  }
  for (const problem of store.problems) tell('file', problem)

  // Each channel of a run has one account.
  const rows = Map.groupBy(store.inbox, ({ channel, id }) => `${channel} ${id}`)
  for (const [name, same] of rows) if (same.length > 1) tell('unique', `${name} has ${same.length} rows`)
  const answered = countsOf(store.sessions.flat())
  for (const [mark, times] of answered) if (times > 1) tell('once', `${mark} is ${times} times in its session`)
  for (const mark of store.unfinished) tell('lost', `the turn of ${mark} has not ended`)

  const withdrawn = new Set(store.questions.flatMap(({ mark, state }) => (state === 'cancelled' || state === 'rejected' ? [mark] : [])))
  const failed = new Map(store.failed.map(({ mark, attempts }) => [mark, attempts]))
  for (const mark of acked) {
    const message = byMark.get(mark)
    if (!message) continue
    /** What was cut so often is given up, and rightly. */
    const isGivenUpRightly = (starts: number, startsMax: number): boolean =>
      starts >= startsMax && kills - (killsBefore.get(mark) ?? 0) >= startsMax
    const isAnswered = answered.has(mark)
    if (message.kind === 'webhook') {
      if (!isAnswered && !isGivenUpRightly(failed.get(mark) ?? 0, WEBHOOK_STARTS_MAX)) tell('lost', `no turn answers ${mark}`)
      continue
    }
    const [row, another] = rows.get(`${message.kind} ${message.id}`) ?? []
    if (!row || another) tell('lost', `${mark} is not once in the inbox`)
    else if (row.isAnswer) continue
    else if (row.state === 'dead' && isAnswered) tell('once', `${mark} is dead, and its session answers it`)
    else if (row.state === 'done' && !isAnswered) tell('once', `${mark} is done, and no session answers it`)
    else if (row.state === 'dead' && message.gate === 'withdrawn' && withdrawn.has(mark)) continue
    else if (row.state !== 'done' && !(row.state === 'dead' && isGivenUpRightly(row.attempts, attemptsMax)))
      tell('lost', `${mark} is ${row.state} after ${row.attempts} starts`)
  }
  return found
}

/** What is fetched by the daemon itself is kept later. */
const isPushed = (message: Message | undefined): boolean => message !== undefined && message.kind !== 'mailpush'
