/** A turn that waits for a person: it outlives every kill, an approved call runs once, any other never, and people are told how their question ended. */
import { countsOf } from './counts-of.ts'
import { type Gate, type History, nameOf, PROMPT_PART, type Seen, type StoreView, type Told, type Violation } from './history.ts'

const OUTCOMES: Readonly<Record<Gate, readonly string[]>> = {
  approved: ['approved'],
  rejected: ['rejected'],
  withdrawn: ['rejected', 'cancelled'],
}
const TOLD: Readonly<Record<string, readonly Told[]>> = { approved: ['ran', 'cut'], rejected: ['refused'], cancelled: ['refused'] }
/** From so many kills on it is looked at whether waiting through them was counted: each may hit the moment before the wait. */
export const KILLS_MIN = 6

/** Positions in what was seen; the last ones where there are several, but for the first request to the model. */
interface Times {
  asked?: number
  waiting?: number
  answered?: number
  askedLast?: number
  told?: Told | undefined
}

export function checkGates({ messages, seen }: History, { inbox, outbox, questions, notices, lines, sessions }: StoreView): Violation[] {
  const found: Violation[] = []
  const tell = (rule: string, detail: string) => void found.push({ rule, detail })
  const rows = new Map(inbox.map((row) => [`${row.channel} ${row.id}`, row]))
  const asked = Map.groupBy(questions, ({ mark }) => mark)
  const prompts = countsOf(outbox.flatMap(({ parts }) => parts.filter(({ part }) => part === PROMPT_PART).map(nameOf)))
  const effects = countsOf(lines)
  const ended = new Set(sessions.flat())
  const times = timesOf(seen, answersIn(messages))

  for (const { mark, kind, id, gate } of messages) {
    const [question, another] = asked.get(mark) ?? []
    const count = effects.get(mark) ?? 0
    if (!gate) {
      if (question || count > 0) tell('gate', `a person was asked about a call of ${mark}, which makes none`)
      continue
    }
    const row = rows.get(`${kind} ${id}`)
    const { told, ...at } = times.get(mark) ?? {}
    if (row?.state === 'dead' && !(gate === 'withdrawn' && OUTCOMES.withdrawn.includes(question?.state ?? '')))
      tell('waited', `${mark} was given up while its question was open`)
    if (another || (question && prompts.get(nameOf({ mark, part: PROMPT_PART })) !== 1))
      tell('asked once', `the question of ${mark} was asked twice`)
    if (!question) {
      if (ended.has(mark) || count > 0) tell('gate', `${mark} has ended, and nobody was asked about its call`)
      continue
    }
    if (!OUTCOMES[gate].includes(question.state)) tell('decided', `the question of ${mark} is ${question.state}, and was to be ${gate}`)
    if (told && !TOLD[question.state]?.includes(told)) tell('told', `the question of ${mark} is ${question.state}, and its call: ${told}`)
    const once = question.state === 'approved' ? 1 : 0
    if (count > once || (count < once && told !== 'cut'))
      tell('gate', `the call of ${mark} ran ${count} times, and its question is ${question.state}`)
    const waited = killsIn(seen, at.waiting, at.answered)
    const others = killsIn(seen, at.asked, at.waiting) + killsIn(seen, at.answered, at.askedLast)
    if (row && waited >= KILLS_MIN && row.attempts > 1 + others + waited / 2)
      tell('waited', `${mark} waited through ${waited} kills, and they count among its ${row.attempts} attempts`)
  }

  /** Answers that came when the question was decided, and were not taken for messages. */
  const late: string[] = []
  for (const { mark, kind, id, answers: answer } of messages) {
    const row = rows.get(`${kind} ${id}`)
    if (!row || !answer) continue
    const [question] = asked.get(answer.mark) ?? []
    if (!row.isAnswer && question?.state !== 'cancelled') tell('answer', `${mark} answers ${answer.mark}, and was taken for a message`)
    if (row.isAnswer && ended.has(mark)) tell('answer', `${mark} was taken as an answer, and as a message`)
    if (row.isAnswer && row.state !== 'done') tell('answer', `${mark} is ${row.state}`)
    if (row.isAnswer && question?.state === 'cancelled') late.push(JSON.stringify([question.place, 'late']))
  }
  const expected = countsOf([...questions.map(({ place, state }) => JSON.stringify([place, state])), ...late])
  const said = countsOf(notices.map(({ place, says }) => JSON.stringify([place, says])))
  for (const name of new Set([...expected.keys(), ...said.keys()]))
    if (expected.get(name) !== said.get(name))
      tell('notice', `${name} was said ${said.get(name) ?? 0} times, of ${expected.get(name) ?? 0}`)
  return found
}

/** The mark of each answer, and of what it answers. */
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
    times.told = event.told ?? times.told
  }
  return all
}

/** None where one of the moments never came. */
const killsIn = (seen: readonly Seen[], from: number | undefined, to: number | undefined): number =>
  from === undefined || to === undefined
    ? 0
    : seen.slice(from, to).filter((event) => event.type === 'ended' && event.by === 'SIGKILL').length

/** While the question that the turn of this message asked was open, and nobody answered it. */
export function killsWaited({ messages, seen }: Pick<History, 'messages' | 'seen'>, mark: string): number {
  const { waiting, answered } = timesOf(seen, answersIn(messages)).get(mark) ?? {}
  return killsIn(seen, waiting, answered)
}
