/** Checks that every acknowledged message is stored at once, stored once, and done in the end, and that the database file is intact. */
import {
  countsOf,
  type History,
  type InboxSeen,
  type Message,
  type Report,
  reporter,
  type Seen,
  type StoreView,
  type Violation,
} from './history.ts'

/** Attempts after which an interrupted turn of `POST /webhook` fails. */
const WEBHOOK_ATTEMPTS_MAX = 5

interface Acknowledged {
  readonly marks: ReadonlySet<string>
  /** How many kills came after the first acknowledgement of the message. */
  killsSince(mark: string): number
}

export function checkKept({ attemptsMax, messages, seen }: History, store: StoreView): Violation[] {
  const { found, report } = reporter()
  const byMark = new Map(messages.map((message) => [message.mark, message]))
  const acknowledged = checkEvents(seen, byMark, report)
  checkRows(store, report)
  const index = indexOf(store)
  for (const mark of acknowledged.marks) {
    const message = byMark.get(mark)
    if (!message) continue
    /** A message that kills interrupted this often is rightly given up. */
    const isRightlyGivenUp = (attempts: number, max: number): boolean => attempts >= max && acknowledged.killsSince(mark) >= max
    if (message.kind === 'post') checkTurn(message, index, (attempts) => isRightlyGivenUp(attempts, WEBHOOK_ATTEMPTS_MAX), report)
    else checkMessage(message, index, (attempts) => isRightlyGivenUp(attempts, attemptsMax), report)
  }
  return found
}

/** Checks answers, stops and each look at the store after a kill. */
function checkEvents(seen: readonly Seen[], byMark: ReadonlyMap<string, Message>, report: Report): Acknowledged {
  const marks = new Set<string>()
  const killsBefore = new Map<string, number>()
  let kills = 0
  for (const event of seen) {
    if (event.type === 'ended' && event.by === 'SIGKILL') kills += 1
    if (event.type === 'ended' && event.by === 'SIGTERM' && event.code !== 0)
      report('stop', `SIGTERM ended the daemon with exit code ${event.code}`)
    if (event.type === 'refused') report('accepted', `${event.marks.join(' ')} was refused with status ${event.status}`)
    if (event.type === 'unexpected') report('unexpected', event.detail)
    if (event.type === 'acked') {
      for (const mark of event.marks) {
        marks.add(mark)
        if (!killsBefore.has(mark)) killsBefore.set(mark, kills)
      }
    }
    if (event.type === 'inspected') {
      const kept = new Set(event.kept)
      for (const mark of marks)
        if (!kept.has(mark) && isPushed(byMark.get(mark))) report('durable', `the acknowledged message ${mark} is not stored after a kill`)
      for (const problem of event.problems) report('file', problem)
    }
  }
  return { marks, killsSince: (mark) => kills - (killsBefore.get(mark) ?? 0) }
}

function checkRows({ problems, inbox, sessions, summaries, unfinished }: StoreView, report: Report): void {
  for (const problem of problems) report('file', problem)
  // Each channel of a run has one account.
  const rows = Map.groupBy(inbox, ({ channel, id }) => `${channel} ${id}`)
  for (const [name, same] of rows) if (same.length > 1) report('unique', `${name} has ${same.length} rows in the inbox`)
  for (const [mark, times] of countsOf(sessions.flat())) if (times > 1) report('once', `${mark} appears ${times} times in its session`)
  for (const { covered, named } of summaries) {
    if (covered.toSorted().join(' ') !== named.toSorted().join(' '))
      report('summary', `a summary of ${covered.join(' ')} names ${named.join(' ')}`)
  }
  for (const mark of unfinished) report('lost', `the turn of ${mark} has not ended`)
}

/** The store, by message. */
interface Index {
  /** By channel and message id. */
  readonly rows: ReadonlyMap<string, readonly InboxSeen[]>
  /** Marks that a session answers. */
  readonly answered: ReadonlySet<string>
  /** Marks whose question was rejected or withdrawn. */
  readonly withdrawn: ReadonlySet<string>
  /** Attempts of failed turns, by mark. */
  readonly failed: ReadonlyMap<string, number>
}

const indexOf = ({ inbox, sessions, questions, failed }: StoreView): Index => ({
  rows: Map.groupBy(inbox, ({ channel, id }) => `${channel} ${id}`),
  answered: new Set(sessions.flat()),
  withdrawn: new Set(questions.filter(({ state }) => state === 'cancelled' || state === 'rejected').map(({ mark }) => mark)),
  failed: new Map(failed.map(({ mark, attempts }) => [mark, attempts])),
})

type GivenUp = (attempts: number) => boolean

/** Checks a message of `POST /webhook`, which has a turn and no row in the inbox. */
function checkTurn({ mark }: Message, { answered, failed }: Index, isRightlyGivenUp: GivenUp, report: Report): void {
  if (!answered.has(mark) && !isRightlyGivenUp(failed.get(mark) ?? 0)) report('lost', `no turn answers ${mark}`)
}

function checkMessage({ mark, kind, id, gate }: Message, index: Index, isRightlyGivenUp: GivenUp, report: Report): void {
  const [row, another] = index.rows.get(`${kind} ${id}`) ?? []
  if (!row || another) {
    report('lost', `${mark} does not have exactly one row in the inbox`)
    return
  }
  // An answer to an approval has no turn, and a message is also dead when its turn was aborted while a person was asked.
  const isWithdrawn = row.state === 'dead' && gate === 'withdrawn' && index.withdrawn.has(mark)
  const isAnswered = index.answered.has(mark)
  if (row.isAnswer) return
  if (row.state === 'dead' && isAnswered) report('once', `${mark} is dead, but its session answers it`)
  else if (row.state === 'done' && !isAnswered) report('once', `${mark} is done, but no session answers it`)
  else if (row.state !== 'done' && !isWithdrawn && !(row.state === 'dead' && isRightlyGivenUp(row.attempts)))
    report('lost', `${mark} is ${row.state} after ${row.attempts} attempts`)
}

/** A message that the daemon fetches itself is stored only after the fetch. */
const isPushed = (message: Message | undefined): boolean => message !== undefined && message.isPulled !== true
