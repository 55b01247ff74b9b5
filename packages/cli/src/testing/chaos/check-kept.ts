/** What was acknowledged is there: at once, once, and done in the end. And the file is whole. */
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

  const rows = Map.groupBy(store.inbox, ({ channel, account, id }) => JSON.stringify([channel, account, id]))
  for (const [key, same] of rows) if (same.length > 1) tell('unique', `${key} has ${same.length} rows`)
  const states = Map.groupBy(store.inbox, ({ channel, id }) => `${channel} ${id}`)
  const answered = countsOf(store.sessions.flat())
  for (const [mark, times] of answered) if (times > 1) tell('once', `${mark} is ${times} times in its session`)
  for (const mark of store.unfinished) tell('lost', `the turn of ${mark} has not ended`)

  for (const mark of acked) {
    const message = byMark.get(mark)
    if (!message) continue
    // What was cut so often is given up, and rightly.
    const mayBeDead = kills - (killsBefore.get(mark) ?? 0) >= (message.kind === 'webhook' ? WEBHOOK_STARTS_MAX : attemptsMax)
    const isAnswered = answered.has(mark)
    if (message.kind === 'webhook') {
      if (!isAnswered && !mayBeDead) tell('lost', `${mark} was acknowledged, and no turn answers it`)
      continue
    }
    const own = states.get(`${message.kind} ${message.id}`) ?? []
    const [row] = own
    if (own.length !== 1 || !row) tell('lost', `${mark} was acknowledged and has ${own.length} rows in the inbox`)
    else if (row.state === 'dead' ? !mayBeDead : row.state !== 'done') tell('lost', `${mark} is ${row.state} after ${row.attempts} starts`)
    else if ((row.state === 'done') !== isAnswered)
      tell('once', `${mark} is ${row.state}, and its session ${isAnswered ? 'answers' : 'lacks'} it`)
  }
  return found
}

/** What is fetched by the daemon itself is kept later. */
const isPushed = (message: Message | undefined): boolean => message !== undefined && message.kind !== 'mailpush'

export function countsOf<Item>(items: readonly Item[]): Map<Item, number> {
  const counts = new Map<Item, number>()
  for (const item of items) counts.set(item, (counts.get(item) ?? 0) + 1)
  return counts
}
