import { describe, expect, test } from 'vitest'
import { checkHistory } from './check-history.ts'
import {
  type CallResult,
  type FaultName,
  type Gate,
  type History,
  type InboxSeen,
  type Message,
  type OutboxSeen,
  PROMPT_PART,
  type QuestionSeen,
  type Seen,
  type StoreView,
} from './history.ts'

const message = (mark: string, more: Partial<Message> = {}): Message => ({
  mark,
  kind: 'chatapp',
  sender: 'ada',
  id: `id-${mark}`,
  parts: 1,
  usesTool: false,
  ...more,
})
const started = (wallMs: number): Seen => ({ type: 'started', wallMs })
const killed = (wallMs: number): Seen => ({ type: 'ended', by: 'SIGKILL', code: null, wallMs })
const stopped = (wallMs: number, code: number | null = 0): Seen => ({ type: 'ended', by: 'SIGTERM', code, wallMs })
const posted = (...marks: string[]): Seen => ({ type: 'posted', marks })
const acked = (...marks: string[]): Seen => ({ type: 'acked', marks })
const asked = (mark: string, afterTool = false): Seen => ({ type: 'asked', mark, afterTool })
const effect = (mark: string): Seen => ({ type: 'effect', mark })
const sending = (mark: string, { fault = null as FaultName | null, part = 1, channel = 'chatapp' } = {}): Seen => ({
  type: 'sending',
  channel,
  parts: [{ mark, part }],
  fault,
})
/** Lives that are killed after their start. */
const kills = (count: number): Seen[] => Array.from({ length: count }, (_, index) => [started(101 + index), killed(101 + index)]).flat()
const inspected = (kept: string[], done: string[] = [], problems: string[] = []): Seen => ({ type: 'inspected', kept, done, problems })

const inboxRow = (mark: string, number: number, more: Partial<InboxSeen> = {}): InboxSeen => ({
  number,
  channel: 'chatapp',
  account: 'bot',
  id: `id-${mark}`,
  state: 'done',
  attempts: 1,
  isAnswer: false,
  ...more,
})
const outboxRow = (mark: string, number: number, more: Partial<OutboxSeen> = {}): OutboxSeen => ({
  number,
  channel: 'chatapp',
  parts: [{ mark, part: 1 }],
  state: 'sent',
  attempts: 1,
  isInterrupted: false,
  error: null,
  endedAtMs: 50,
  ...more,
})

/** Two messages of one sender; a kill interrupts the second one, which then runs again. */
const good = (): { history: History; store: StoreView } => ({
  history: {
    attemptsMax: 5,
    dropRepeats: ['textrelay'],
    messages: [message('a', { usesTool: true }), message('b')],
    seen: [
      started(0),
      ...[posted('a'), acked('a'), asked('a'), effect('a'), asked('a', true), sending('a')],
      ...[posted('b'), acked('b'), asked('b')],
      killed(100),
      inspected(['a', 'b'], ['a']),
      started(200),
      ...[asked('b'), sending('b')],
      stopped(300),
    ],
    delivered: ['a', 'b'].map((mark) => ({ channel: 'chatapp', parts: [{ mark, part: 1 }] })),
  },
  store: {
    problems: [],
    inbox: [inboxRow('a', 1), inboxRow('b', 2, { attempts: 2 })],
    outbox: [outboxRow('a', 1), outboxRow('b', 2)],
    questions: [],
    notices: [],
    lines: [],
    sessions: [['a', 'b']],
    summaries: [{ covered: ['a'], named: ['a'] }],
    unfinished: [],
    failed: [],
  },
})

/** The rules that the history and the store break after these changes. */
const broken = (history: Partial<History>, store: Partial<StoreView> = {}): string[] => {
  const base = good()
  const violations = checkHistory({ ...base.history, ...history }, { ...base.store, ...store })
  return [...new Set(violations.map(({ rule }) => rule))].toSorted()
}
const { seen } = good().history
/** The events, with more of them after the first one that equals `like`. */
const after = (like: Seen, ...more: Seen[]): Seen[] => {
  const at = seen.findIndex((event) => JSON.stringify(event) === JSON.stringify(like))
  expect(at).toBeGreaterThanOrEqual(0)
  return seen.toSpliced(at + 1, 0, ...more)
}
const without = (...removed: Seen[]): Seen[] =>
  seen.filter((event) => !removed.some((one) => JSON.stringify(one) === JSON.stringify(event)))

test('a correct history breaks no rule', () => {
  expect(checkHistory(good().history, good().store)).toEqual([])
})

describe('finds an acknowledged message that is not done', () => {
  const lost = { inbox: [inboxRow('a', 1)], outbox: [outboxRow('a', 1)], sessions: [['a']] }

  test('without a row', () => expect(broken({}, lost)).toEqual(['lost']))
  test('but not one that was never acknowledged', () => {
    const known = seen.map((event) => (event.type === 'inspected' ? inspected(['a']) : event))
    expect(broken({ seen: known.filter((event) => !('marks' in event && event.marks.includes('b'))) }, lost)).toEqual([])
  })
  test.each(['pending', 'running', 'dead'])('in the state %s at the end', (state) => {
    const store = { inbox: [inboxRow('a', 1), inboxRow('b', 2, { state, attempts: 6 })], sessions: [['a']], outbox: [outboxRow('a', 1)] }
    expect(broken({}, store)).toEqual(['lost'])
  })
  test('but not one that is dead after five kills', () => {
    const all = without(asked('b'), sending('b')).toSpliced(-2, 0, ...kills(4))
    const store = {
      inbox: [inboxRow('a', 1), inboxRow('b', 2, { state: 'dead', attempts: 6 })],
      outbox: [outboxRow('a', 1)],
      sessions: [['a']],
    }
    expect(broken({ seen: all }, store)).toEqual([])
    expect(broken({ seen: all.toSpliced(-3, 1) }, store)).toEqual(['lost'])
  })
  test('done without a turn in its session, or dead with one', () => {
    expect(broken({}, { sessions: [['a']] })).toEqual(['once'])
    expect(broken({}, { inbox: [inboxRow('a', 1), inboxRow('b', 2, { state: 'dead', attempts: 6 })] })).toEqual(['once'])
  })
  test('not stored right after a kill', () => {
    const event = seen.find(({ type }) => type === 'inspected')
    expect(broken({ seen: seen.map((each) => (each === event ? inspected(['a'], ['a']) : each)) })).toEqual(['durable'])
  })
  test('but not a mail that may still be in the mailbox after a kill', () => {
    const mails = { messages: [message('a'), message('b', { kind: 'mailpush', isPulled: true, sender: 'ada' })] }
    expect(broken({ ...mails, seen: seen.map((each) => (each.type === 'inspected' ? inspected(['a'], ['a']) : each)) })).not.toContain(
      'durable',
    )
  })
  test('from a webhook, with an unfinished turn or none', () => {
    const messages = [message('a'), message('b', { kind: 'post', parts: 0 })]
    const rest = { inbox: [inboxRow('a', 1)], outbox: [outboxRow('a', 1)] }
    expect(broken({ messages, seen: without(sending('b')) }, { ...rest, sessions: [['a'], ['b']] })).toEqual([])
    expect(broken({ messages, seen: without(sending('b')) }, { ...rest, sessions: [['a']], unfinished: ['b'] })).toEqual(['lost'])
    expect(broken({ messages, seen: without(sending('b')) }, { ...rest, sessions: [['a']] })).toEqual(['lost'])
  })
  test('from a webhook, with a failed turn, unless five kills interrupted it', () => {
    const messages = [message('a'), message('b', { kind: 'post', parts: 0 })]
    const rest = { inbox: [inboxRow('a', 1)], outbox: [outboxRow('a', 1)], sessions: [['a']] }
    const interrupted = without(asked('b'), sending('b')).toSpliced(-2, 0, ...kills(4))
    expect(broken({ messages, seen: interrupted }, { ...rest, failed: [{ mark: 'b', attempts: 6 }] })).toEqual([])
    expect(broken({ messages, seen: interrupted }, { ...rest, failed: [{ mark: 'b', attempts: 1 }] })).toEqual(['lost'])
    expect(broken({ messages, seen: interrupted }, rest)).toEqual(['lost'])
  })
  test('with two rows', () => {
    expect(broken({}, { inbox: [inboxRow('a', 1), inboxRow('b', 2), inboxRow('b', 3)] })).toEqual(['lost', 'unique'])
  })
  test('missing from the summary that covers it', () =>
    expect(broken({}, { summaries: [{ covered: ['a', 'b'], named: ['a'] }] })).toEqual(['summary']))
  test('in a summary that does not cover it', () =>
    expect(broken({}, { summaries: [{ covered: ['a'], named: ['a', 'b'] }] })).toEqual(['summary']))
  test('twice in its session', () => expect(broken({}, { sessions: [['a', 'b', 'b']] })).toEqual(['once']))
  test('in a damaged file, at the end or after a kill', () => {
    expect(broken({}, { problems: ['page 7 is torn'] })).toEqual(['file'])
    expect(broken({ seen: after(killed(100), inspected(['a', 'b'], [], ['page 7 is torn'])) })).toEqual(['file'])
  })
  test('refused despite its signature', () => {
    expect(broken({ seen: after(posted('b'), { type: 'refused', marks: ['b'], status: 401 }) })).toEqual(['accepted'])
  })
  test('after a stop with another exit code than 0', () => {
    expect(broken({ seen: seen.with(-1, stopped(300, 1)) })).toEqual(['stop'])
    expect(broken({ seen: seen.with(-1, stopped(300, null)) })).toEqual(['stop'])
  })
  test('whose request to the model has no mark', () => {
    expect(broken({ seen: after(asked('a'), { type: 'unexpected', detail: 'no mark' }) })).toEqual(['unexpected'])
  })
})

describe('finds a turn that runs too often', () => {
  test('asks the model after the reply was sent', () => expect(broken({ seen: [...seen, started(400), asked('a')] })).toContain('ended'))
  test('asks the model after its end was stored', () => {
    const early = after(killed(100), inspected(['a', 'b'], ['b']))
    expect(broken({ seen: early })).toEqual(['ended'])
  })
  test('begins twice in one life', () => expect(broken({ seen: after(asked('b'), asked('b')) })).toEqual(['begun']))
  test('gives the model a tool result twice in one life', () => {
    expect(broken({ seen: after(asked('a', true), asked('a', true)) })).toEqual(['begun'])
  })
  test('begins again after its tool call was stored', () => {
    const again = without(sending('a'), sending('b'), asked('b')).toSpliced(-1, 0, asked('a'), sending('a'), asked('b'), sending('b'))
    expect(broken({ seen: again.map((event) => (event.type === 'inspected' ? inspected(['a', 'b']) : event)) })).toEqual(['checkpoint'])
  })
  test('repeats an effect after the result was stored', () => {
    expect(broken({ seen: after(asked('a', true), effect('a')) })).toEqual(['effect'])
    expect(broken({ seen: after(started(200), effect('a')) })).toEqual(['effect'])
  })
  test('has an effect twice in one life', () => expect(broken({ seen: after(effect('a'), effect('a')) })).toEqual(['effect']))
  test('but an interrupted tool may have its effect twice', () => {
    const interrupted = without(asked('a', true), sending('a'), asked('b'), sending('b'))
    const resumed = interrupted.toSpliced(-1, 0, asked('a'), effect('a'), asked('a', true), sending('a'), asked('b'), sending('b'))
    expect(broken({ seen: resumed.map((event) => (event.type === 'inspected' ? inspected(['a', 'b']) : event)) })).toEqual([])
  })
})

describe('finds a reply that is not sent exactly once', () => {
  const { delivered } = good().history
  const [toA] = delivered

  test('sent twice', () => expect(broken({ delivered: [...delivered, ...delivered] })).toEqual(['sent once']))
  test('never sent', () => expect(broken({ delivered: toA ? [toA] : [] })).toEqual(['sent']))
  test.each(['queued', 'sending', 'failed'])('in the state %s at the end', (state) => {
    expect(broken({}, { outbox: [outboxRow('a', 1), outboxRow('b', 2, { state })] })).toEqual(['sent'])
  })
  test('never queued, or queued twice', () => {
    expect(broken({}, { outbox: [outboxRow('a', 1)] })).toEqual(['queued once'])
    expect(broken({}, { outbox: [outboxRow('a', 1), outboxRow('b', 2), outboxRow('b', 3)] })).toEqual(['queued once'])
  })
  test('with a missing part', () => {
    expect(broken({ messages: [message('a', { parts: 2 }), message('b')] })).toEqual(['queued once'])
  })

  const ambiguous = (more: Partial<OutboxSeen>) => ({ outbox: [outboxRow('a', 1, { state: 'ambiguous', ...more }), outboxRow('b', 2)] })
  const withFault = (fault: FaultName) => ({ seen: seen.map((event) => (event === seen[6] ? sending('a', { fault }) : event)) })

  test('ambiguous without a reason', () => {
    expect(broken({}, ambiguous({}))).toEqual(['ambiguous'])
    expect(broken(withFault('away'), ambiguous({}))).toEqual(['ambiguous'])
  })
  test('ambiguous without a reason, with the error that the daemon recorded', () => {
    const { history, store } = good()
    const [found] = checkHistory(history, { ...store, ...ambiguous({ error: 'The connection to chatapp broke (UND_ERR_SOCKET)' }) })
    expect(found?.detail).toContain('(UND_ERR_SOCKET)')
  })
  test.each<FaultName>(['lost', 'reset'])('but may be ambiguous after the fault %s', (fault) => {
    expect(broken(withFault(fault), ambiguous({}))).toEqual([])
    expect(broken({ ...withFault(fault), delivered: delivered.slice(1) }, ambiguous({}))).toEqual([])
  })
  test('but may be ambiguous after a kill', () => {
    expect(broken({}, ambiguous({ isInterrupted: true, endedAtMs: 250 }))).toEqual([])
  })
  test('recorded as interrupted although no kill followed', () => {
    expect(broken({}, ambiguous({ isInterrupted: true, endedAtMs: 50 }))).toEqual(['ambiguous'])
    expect(broken({}, ambiguous({ isInterrupted: true, endedAtMs: 150 }))).toEqual(['ambiguous'])
    const gently = seen.map((event) => (event.type === 'ended' && event.by === 'SIGKILL' ? stopped(100) : event))
    expect(broken({ seen: gently }, ambiguous({ isInterrupted: true, endedAtMs: 250 }))).toEqual(['ambiguous'])
  })
  test('but one refused at first may be interrupted before its next request', () => {
    const refused = (end: Seen) => ({
      seen: [...withFault('away').seen.slice(0, -1), stopped(290), started(300), end, started(500), stopped(600)],
      delivered: delivered.slice(1),
    })
    expect(broken(refused(killed(400)), ambiguous({ isInterrupted: true, attempts: 1, endedAtMs: 550 }))).toEqual([])
    const gently = refused(stopped(400)).seen.map((event) => (event.type === 'ended' ? stopped(event.wallMs) : event))
    const ambiguousRow = ambiguous({ isInterrupted: true, attempts: 1, endedAtMs: 550 })
    expect(broken({ ...refused(stopped(400)), seen: gently }, ambiguousRow)).toEqual(['ambiguous'])
  })
  test('more replies interrupted by one kill than can run at once', () => {
    const interrupted = Array.from({ length: 65 }, (_, index) =>
      outboxRow(`x${index}`, 10 + index, { state: 'ambiguous', isInterrupted: true, endedAtMs: 250 }),
    )
    const { outbox } = good().store
    expect(broken({}, { outbox: [...outbox, ...interrupted.slice(1)] })).toEqual([])
    expect(broken({}, { outbox: [...outbox, ...interrupted] })).toEqual(['ambiguous'])
  })
  test('ambiguous although the platform drops repeats', () => {
    const textrelay = { state: 'ambiguous', channel: 'textrelay', isInterrupted: true, endedAtMs: 250 }
    expect(broken({}, ambiguous(textrelay))).toEqual(['ambiguous'])
  })
  test('dead too early, or although the platform has it', () => {
    const dead = { outbox: [outboxRow('a', 1, { state: 'dead' }), outboxRow('b', 2)] }
    expect(broken({ delivered: delivered.slice(1) }, dead)).toEqual(['dead'])
    const often = [1, 2, 3, 4, 5].map(() => sending('a', { fault: 'away' }))
    const rightly = { outbox: [outboxRow('a', 1, { state: 'dead', attempts: 5 }), outboxRow('b', 2)] }
    const tried = seen.flatMap((event) => (event === seen[6] ? often : [event]))
    expect(broken({ seen: tried, delivered: delivered.slice(1) }, rightly)).toEqual([])
    expect(broken({ seen: tried }, rightly)).toEqual(['dead'])
  })
})

describe('finds a session out of order', () => {
  test('turns against the order of acknowledgements', () => expect(broken({}, { sessions: [['b', 'a']] })).toEqual(['order']))
  test('turns against the order of the inbox, for messages of one request', () => {
    const [first, ...rest] = without(posted('a'), acked('a'), posted('b'), acked('b'))
    const atOnce = first ? [first, posted('a', 'b'), acked('a', 'b'), ...rest] : []
    expect(broken({ seen: atOnce })).toEqual([])
    expect(broken({ seen: atOnce }, { inbox: [inboxRow('a', 2), inboxRow('b', 1)] })).toEqual(['order'])
  })
  test('a turn that begins before the previous one has ended', () => {
    const mixed = without(asked('b'), asked('a', true), sending('a')).toSpliced(5, 0, asked('b'), asked('a', true), sending('a'))
    const inOrder = mixed.filter(({ type }) => type !== 'posted' && type !== 'acked')
    expect(broken({ seen: [started(0), posted('a', 'b'), acked('a', 'b'), ...inOrder.slice(1)] })).toEqual(['order'])
  })
  test('replies against the order of their turns', () => {
    const swapped = seen.map((event) => (event === seen[6] ? sending('b') : event.type === 'sending' ? sending('a') : event))
    expect(broken({ seen: swapped })).toContain('order')
  })
  test('two senders in one session', () => {
    expect(broken({ messages: [message('a'), message('b', { sender: 'bob' })] })).toEqual(['order'])
  })
  test('but other sessions may run in parallel', () => {
    const messages = [message('a'), message('b', { sender: 'bob' })]
    const [before = [], after = []] = [seen.slice(0, 6), seen.slice(6)]
    const parallel = [...before.slice(0, 5), posted('b'), acked('b'), asked('b'), ...before.slice(5), ...after.slice(4)]
    expect(broken({ messages, seen: parallel }, { sessions: [['b'], ['a']] })).toEqual([])
  })
})

describe('checks a turn that waits for a person and', () => {
  const question = (state: string): QuestionSeen => ({ mark: 'g', place: 'here', state })
  const gotResult = (result: CallResult): Seen => ({ type: 'asked', mark: 'g', afterTool: true, result })
  const answer = message('y', { answers: { mark: 'g', approve: true } })

  /** The turn of a message asks a person, waits through six kills, is answered, and ends; the store counts `attempts`. */
  function gated(gate: Gate, { state = gate as string, result = 'ran' as CallResult, attempts = 1 } = {}) {
    const prompt = outboxRow('g', 1, { parts: [{ mark: 'g', part: PROMPT_PART }] })
    const history: Partial<History> = {
      messages: [message('g', { gate }), answer],
      seen: [
        ...[started(0), posted('g'), acked('g'), asked('g'), sending('g', { part: PROMPT_PART }), { type: 'waiting', mark: 'g' } as const],
        ...[killed(100), ...kills(5), started(200)],
        ...[posted('y'), acked('y'), gotResult(result), sending('g'), stopped(300)],
      ],
      delivered: [PROMPT_PART, 1].map((part) => ({ channel: 'chatapp', parts: [{ mark: 'g', part }] })),
    }
    const store: Partial<StoreView> = {
      inbox: [inboxRow('g', 1, { attempts }), inboxRow('y', 2, { isAnswer: true })],
      outbox: [prompt, outboxRow('g', 2)],
      questions: [question(state)],
      notices: [{ place: 'here', says: state as 'approved' }],
      lines: result === 'ran' ? ['g'] : [],
      sessions: [['g']],
    }
    return { history, store, prompt }
  }
  const brokenBy = (made: ReturnType<typeof gated>, history: Partial<History>, store: Partial<StoreView> = {}) =>
    broken({ ...made.history, ...history }, { ...made.store, ...store })
  const approved = gated('approved')
  const rejected = gated('rejected', { result: 'refused' })
  /** The turn was aborted, and the answer came too late. */
  const withdrawn = gated('withdrawn', { state: 'cancelled', result: 'refused' })
  const aborted: Partial<StoreView> = {
    inbox: [inboxRow('g', 1, { state: 'dead' }), inboxRow('y', 2, { isAnswer: true })],
    outbox: [withdrawn.prompt],
    notices: [
      { place: 'here', says: 'cancelled' },
      { place: 'here', says: 'late' },
    ],
    sessions: [[]],
  }
  const unsent = { delivered: withdrawn.history.delivered?.slice(0, 1) ?? [] }

  test('accepts an approval or a rejection after six kills', () => {
    expect(brokenBy(approved, {})).toEqual([])
    expect(brokenBy(rejected, {})).toEqual([])
  })
  test('accepts an abort while a person answers', () => {
    expect(brokenBy(withdrawn, unsent, aborted)).toEqual([])
  })
  test('accepts an abort right after a rejection', () => {
    const notices = [{ place: 'here', says: 'rejected' } as const]
    expect(brokenBy(withdrawn, unsent, { ...aborted, questions: [question('rejected')], notices })).toEqual([])
    expect(brokenBy(rejected, unsent, { ...aborted, questions: [question('rejected')], notices })).toContain('waited')
  })
  test('finds one that became dead by waiting', () => {
    const inbox = [inboxRow('g', 1, { state: 'dead', attempts: 6 }), inboxRow('y', 2, { isAnswer: true })]
    expect(brokenBy(approved, {}, { inbox })).toContain('waited')
    expect(brokenBy(withdrawn, {}, { ...aborted, questions: [question('pending')], notices: [] })).toContain('waited')
  })
  test('finds kills during the wait that count as attempts', () => {
    expect(brokenBy(gated('approved', { attempts: 4 }), {})).toEqual([])
    expect(brokenBy(gated('approved', { attempts: 5 }), {})).toEqual(['waited'])
  })
  test('accepts other kills that count as attempts', () => {
    const made = gated('approved', { attempts: 6 })
    const last = made.history.seen?.findIndex((event) => event.type === 'asked' && event.afterTool) ?? 0
    expect(brokenBy(made, { seen: made.history.seen?.toSpliced(last, 0, ...kills(2)) ?? [] })).toEqual([])
  })
  test('finds a decision that differs from the answer', () => {
    expect(brokenBy(gated('approved', { state: 'rejected', result: 'refused' }), {})).toEqual(['decided'])
    expect(brokenBy(gated('approved', { state: 'cancelled', result: 'refused' }), {})).toContain('decided')
    expect(brokenBy(gated('rejected', { state: 'expired', result: 'refused' }), {})).toContain('decided')
  })
  test('finds an approved call that runs twice or never', () => {
    expect(brokenBy(approved, {}, { lines: ['g', 'g'] })).toEqual(['gate'])
    expect(brokenBy(approved, {}, { lines: [] })).toEqual(['gate'])
  })
  test('accepts that a call interrupted by a kill ran once or never', () => {
    const interrupted = gated('approved', { result: 'interrupted' })
    expect(brokenBy(interrupted, {})).toEqual([])
    expect(brokenBy(interrupted, {}, { lines: ['g'] })).toEqual([])
    expect(brokenBy(interrupted, {}, { lines: ['g', 'g'] })).toEqual(['gate'])
  })
  test('finds a call that runs after a rejection or a withdrawal', () => {
    expect(brokenBy(rejected, {}, { lines: ['g'] })).toEqual(['gate'])
    expect(brokenBy(withdrawn, unsent, { ...aborted, lines: ['g'] })).toEqual(['gate'])
  })
  test('finds a call without its question, and a question without need', () => {
    expect(brokenBy(approved, {}, { questions: [], notices: [] })).toEqual(['gate'])
    expect(broken({}, { lines: ['a'] })).toEqual(['gate'])
    expect(
      broken({}, { questions: [{ mark: 'a', place: 'here', state: 'approved' }], notices: [{ place: 'here', says: 'approved' }] }),
    ).toEqual(['gate'])
  })
  test('finds a result for the model that differs from the decision', () => {
    expect(brokenBy(gated('rejected', { result: 'interrupted' }), {})).toEqual(['result'])
    expect(brokenBy(gated('approved', { result: 'other' }), {}, { lines: ['g'] })).toEqual(['result'])
  })
  test('finds a question or a prompt that is sent twice', () => {
    expect(brokenBy(approved, {}, { questions: [question('approved'), question('approved')] })).toContain('asked once')
    expect(brokenBy(approved, {}, { outbox: [approved.prompt, ...(approved.store.outbox ?? [])] })).toEqual(['asked once'])
    const { delivered = [] } = approved.history
    expect(brokenBy(approved, { delivered: [...delivered, ...delivered.slice(0, 1)] })).toEqual(['sent once'])
    // After a lost answer, a second prompt is right, and a third is not.
    const { seen = [] } = approved.history
    const again = {
      seen: seen.flatMap((event) =>
        event.type === 'sending' && event.parts[0]?.part === 0 ? [{ ...event, fault: 'lost' as const }, event] : event,
      ),
    }
    const prompts = (count: number) => [...Array.from({ length: count }, () => delivered.slice(0, 1)).flat(), ...delivered]
    expect(brokenBy(approved, { ...again, delivered: prompts(1) })).toEqual([])
    expect(brokenBy(approved, { ...again, delivered: prompts(2) })).toEqual(['sent once'])
  })
  test('finds an answer that became a message, unless the question was withdrawn', () => {
    expect(brokenBy(approved, {}, { inbox: [inboxRow('g', 1), inboxRow('y', 2)] })).toContain('answer')
    const turn = {
      outbox: [withdrawn.prompt, outboxRow('y', 2)],
      sessions: [['y']],
      notices: [{ place: 'here', says: 'cancelled' } as const],
    }
    const reply = { delivered: ['g', 'y'].map((mark) => ({ channel: 'chatapp', parts: [{ mark, part: mark === 'g' ? 0 : 1 }] }) as const) }
    const inbox = [inboxRow('g', 1, { state: 'dead' }), inboxRow('y', 2)]
    expect(brokenBy(withdrawn, reply, { ...aborted, ...turn, inbox })).toEqual([])
    expect(brokenBy(withdrawn, reply, { ...aborted, ...turn })).toContain('answer')
  })
  test('finds a lost answer', () => {
    expect(brokenBy(approved, {}, { inbox: [inboxRow('g', 1)] })).toContain('lost')
    expect(brokenBy(approved, {}, { inbox: [inboxRow('g', 1), inboxRow('y', 2, { isAnswer: true, state: 'pending' })] })).toEqual([
      'answer',
    ])
  })
  test.each(['cancelled', 'late'])('finds a missing or repeated notice of the kind %s', (says) => {
    const { notices = [] } = aborted
    const own = notices.filter((notice) => notice.says === says)
    expect(brokenBy(withdrawn, unsent, { ...aborted, notices: notices.filter((notice) => notice.says !== says) })).toEqual(['notice'])
    expect(brokenBy(withdrawn, unsent, { ...aborted, notices: [...notices, ...own] })).toEqual(['notice'])
  })
})
