/**
 * Checks the turns that wait for a person: they survive every kill, an approved call runs once and any other never, and people
 * learn how their question ended.
 */
import {
  type CallResult,
  countsOf,
  type Gate,
  type History,
  type Message,
  nameOf,
  PROMPT_PART,
  type QuestionSeen,
  type Report,
  reporter,
  type Seen,
  type StoreView,
  type Violation,
} from './history.ts'

/** The states in which the question of a gate may end. */
const OUTCOMES: Readonly<Record<Gate, readonly string[]>> = {
  approved: ['approved'],
  rejected: ['rejected'],
  withdrawn: ['rejected', 'cancelled'],
}
/** The results that the model may get of a call, by the state of its question. */
const RESULTS: Readonly<Record<string, readonly CallResult[]>> = {
  approved: ['ran', 'interrupted'],
  rejected: ['refused'],
  cancelled: ['refused'],
}
/** Attempts are compared with kills only from this number of kills on: each kill may come just before the wait begins. */
export const KILLS_MIN = 6

/** Positions in the list of events: the last one if there are several, but the first one for `asked`. */
interface Times {
  asked?: number
  waiting?: number
  answered?: number
  askedLast?: number
  result?: CallResult | undefined
}

/** The store and the events, by mark. */
interface Evidence {
  readonly rows: ReadonlyMap<string, StoreView['inbox'][number]>
  readonly questions: ReadonlyMap<string, readonly QuestionSeen[]>
  readonly prompts: ReadonlyMap<string, number>
  readonly effects: ReadonlyMap<string, number>
  readonly ended: ReadonlySet<string>
  readonly times: ReadonlyMap<string, Times>
  readonly seen: readonly Seen[]
}

export function checkGates({ messages, seen }: History, store: StoreView): Violation[] {
  const { found, report } = reporter()
  const evidence: Evidence = {
    rows: new Map(store.inbox.map((row) => [`${row.channel} ${row.id}`, row])),
    questions: Map.groupBy(store.questions, ({ mark }) => mark),
    prompts: countsOf(store.outbox.flatMap(({ parts }) => parts.filter(({ part }) => part === PROMPT_PART).map(nameOf))),
    effects: countsOf(store.lines),
    ended: new Set(store.sessions.flat()),
    times: timesOf(seen, answersIn(messages)),
    seen,
  }
  for (const message of messages) {
    if (message.gate) checkGate(message, message.gate, evidence, report)
    else checkNoGate(message, evidence, report)
  }
  const late = messages.flatMap((message) => checkAnswer(message, evidence, report))
  checkNotices(store, late, report)
  return found
}

function checkNoGate({ mark }: Message, { questions, effects }: Evidence, report: Report): void {
  if (questions.has(mark) || effects.has(mark)) report('gate', `a person was asked about a call of ${mark}, which makes no such call`)
}

function checkGate({ mark, kind, id }: Message, gate: Gate, evidence: Evidence, report: Report): void {
  const { rows, questions, prompts, effects, ended, times, seen } = evidence
  const row = rows.get(`${kind} ${id}`)
  const [question, another] = questions.get(mark) ?? []
  const count = effects.get(mark) ?? 0
  const { result, ...at } = times.get(mark) ?? {}
  if (row?.state === 'dead' && !(gate === 'withdrawn' && OUTCOMES.withdrawn.includes(question?.state ?? '')))
    report('waited', `${mark} became a dead letter while its question was open`)
  if (another || (question && prompts.get(nameOf({ mark, part: PROMPT_PART })) !== 1))
    report('asked once', `the question of ${mark} was asked twice`)
  if (!question) {
    if (ended.has(mark) || count > 0) report('gate', `no person was asked about the call of ${mark}, but its turn has ended`)
    return
  }
  const { state } = question
  if (!OUTCOMES[gate].includes(state)) report('decided', `the question of ${mark} is ${state} instead of ${gate}`)
  if (result && !RESULTS[state]?.includes(result))
    report('result', `the model got the result "${result}" of ${mark}, whose question is ${state}`)
  const expected = state === 'approved' ? 1 : 0
  if (count > expected || (count < expected && result !== 'interrupted'))
    report('gate', `the call of ${mark} ran ${count} times, but its question is ${state}`)
  const killsWhileWaiting = killsBetween(seen, at.waiting, at.answered)
  const otherKills = killsBetween(seen, at.asked, at.waiting) + killsBetween(seen, at.answered, at.askedLast)
  if (row && killsWhileWaiting >= KILLS_MIN && row.attempts > 1 + otherKills + killsWhileWaiting / 2)
    report('waited', `${mark} counts ${row.attempts} attempts: kills while it waited for a person (${killsWhileWaiting}) count among them`)
}

/** Checks the answer to a question. Returns the notice that it came too late, if one is due. */
function checkAnswer({ mark, kind, id, answers: answer }: Message, { rows, questions, ended }: Evidence, report: Report): string[] {
  const row = rows.get(`${kind} ${id}`)
  if (!row || !answer) return []
  const [question] = questions.get(answer.mark) ?? []
  if (!row.isAnswer && question?.state !== 'cancelled')
    report('answer', `${mark} became a message to the agent, but it answers ${answer.mark}`)
  if (row.isAnswer && ended.has(mark)) report('answer', `${mark} became both an answer and a message to the agent`)
  if (row.isAnswer && row.state !== 'done') report('answer', `${mark} is ${row.state} at the end`)
  return row.isAnswer && question?.state === 'cancelled' ? [noticeName(question.place, 'late')] : []
}

/** Each question has one notice of its end, and each late answer one notice that it came too late. */
function checkNotices({ questions, notices }: StoreView, late: readonly string[], report: Report): void {
  const expected = countsOf([...questions.map(({ place, state }) => noticeName(place, state)), ...late])
  const sent = countsOf(notices.map(({ place, says }) => noticeName(place, says)))
  for (const name of new Set([...expected.keys(), ...sent.keys()])) {
    const [wanted, were] = [expected.get(name) ?? 0, sent.get(name) ?? 0]
    if (wanted !== were) report('notice', `${were} notices ${name} were sent instead of ${wanted}`)
  }
}

const noticeName = (place: string, says: string): string => JSON.stringify([place, says])

/** The mark of each answer, with the mark of the message that it answers. */
const answersIn = (messages: History['messages']): ReadonlyMap<string, string> =>
  new Map(messages.flatMap(({ mark, answers }) => (answers ? [[mark, answers.mark]] : [])))

function timesOf(seen: readonly Seen[], answers: ReadonlyMap<string, string>): Map<string, Times> {
  const all = new Map<string, Times>()
  const at = (mark: string): Times => {
    const times = all.get(mark) ?? {}
    all.set(mark, times)
    return times
  }
  for (const [position, event] of seen.entries()) {
    if (event.type === 'waiting') at(event.mark).waiting ??= position
    for (const mark of event.type === 'posted' ? event.marks : []) {
      const question = answers.get(mark)
      if (question !== undefined) at(question).answered ??= position
    }
    if (event.type !== 'asked') continue
    const times = at(event.mark)
    times.asked ??= position
    times.askedLast = position
    times.result = event.result ?? times.result
  }
  return all
}

/** Kills between two events; 0 if one of them never happened. */
const killsBetween = (seen: readonly Seen[], from: number | undefined, to: number | undefined): number =>
  from === undefined || to === undefined
    ? 0
    : seen.slice(from, to).filter((event) => event.type === 'ended' && event.by === 'SIGKILL').length

/** Kills between the question of this message and its answer. */
export function killsWaited({ messages, seen }: Pick<History, 'messages' | 'seen'>, mark: string): number {
  const { waiting, answered } = timesOf(seen, answersIn(messages)).get(mark) ?? {}
  return killsBetween(seen, waiting, answered)
}
