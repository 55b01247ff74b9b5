import { describe, expect, test } from 'vitest'
import { checkHistory } from './check-history.ts'
import {
  type ChannelName,
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
  type Told,
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
const sending = (mark: string, { fault = null as FaultName | null, part = 1, channel = 'chatapp' as ChannelName } = {}): Seen => ({
  type: 'sending',
  channel,
  parts: [{ mark, part }],
  fault,
})
/** Lives that begin and are killed. */
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
  isCut: false,
  endedAtMs: 50,
  ...more,
})

/** Two messages of one sender, the second cut by a kill and run anew. */
const good = (): { history: History; store: StoreView } => ({
  history: {
    attemptsMax: 5,
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
    unfinished: [],
    failed: [],
  },
})

/** The rules that are broken once the history and the store are changed so. */
const broken = (history: Partial<History>, store: Partial<StoreView> = {}): string[] => {
  const base = good()
  const violations = checkHistory({ ...base.history, ...history }, { ...base.store, ...store })
  return [...new Set(violations.map(({ rule }) => rule))].toSorted()
}
const { seen } = good().history
/** What was seen, with more behind the first event that is like `like`. */
const behind = (like: Seen, ...more: Seen[]): Seen[] => {
  const at = seen.findIndex((event) => JSON.stringify(event) === JSON.stringify(like))
  expect(at).toBeGreaterThanOrEqual(0)
  return seen.toSpliced(at + 1, 0, ...more)
}
const without = (...unlike: Seen[]): Seen[] => seen.filter((event) => !unlike.some((one) => JSON.stringify(one) === JSON.stringify(event)))

test('a history in which all is well breaks no rule', () => {
  expect(checkHistory(good().history, good().store)).toEqual([])
})

describe('what was acknowledged is kept', () => {
  const lost = { inbox: [inboxRow('a', 1)], outbox: [outboxRow('a', 1)], sessions: [['a']] }

  test('a message without a row is lost', () => expect(broken({}, lost)).toEqual(['lost']))
  test('one that nobody acknowledged is not', () => {
    const known = seen.map((event) => (event.type === 'inspected' ? inspected(['a']) : event))
    expect(broken({ seen: known.filter((event) => !('marks' in event && event.marks.includes('b'))) }, lost)).toEqual([])
  })
  test.each(['pending', 'running', 'dead'])('one that is %s in the end is lost', (state) => {
    const store = { inbox: [inboxRow('a', 1), inboxRow('b', 2, { state, attempts: 6 })], sessions: [['a']], outbox: [outboxRow('a', 1)] }
    expect(broken({}, store)).toEqual(['lost'])
  })
  test('one that is dead after five kills is not', () => {
    const all = without(asked('b'), sending('b')).toSpliced(-2, 0, ...kills(4))
    const store = {
      inbox: [inboxRow('a', 1), inboxRow('b', 2, { state: 'dead', attempts: 6 })],
      outbox: [outboxRow('a', 1)],
      sessions: [['a']],
    }
    expect(broken({ seen: all }, store)).toEqual([])
    expect(broken({ seen: all.toSpliced(-3, 1) }, store)).toEqual(['lost'])
  })
  test('one that is done without a turn in its session, or dead with one', () => {
    expect(broken({}, { sessions: [['a']] })).toEqual(['once'])
    expect(broken({}, { inbox: [inboxRow('a', 1), inboxRow('b', 2, { state: 'dead', attempts: 6 })] })).toEqual(['once'])
  })
  test('one that is missing right after a kill was not durable', () => {
    const event = seen.find(({ type }) => type === 'inspected')
    expect(broken({ seen: seen.map((each) => (each === event ? inspected(['a'], ['a']) : each)) })).toEqual(['durable'])
  })
  test('a mail may still wait at its provider then', () => {
    const mails = { messages: [message('a'), message('b', { kind: 'mailpush', sender: 'ada' })] }
    expect(broken({ ...mails, seen: seen.map((each) => (each.type === 'inspected' ? inspected(['a'], ['a']) : each)) })).not.toContain(
      'durable',
    )
  })
  test('a webhook whose turn has not ended, or that has none', () => {
    const messages = [message('a'), message('b', { kind: 'webhook', parts: 0 })]
    const rest = { inbox: [inboxRow('a', 1)], outbox: [outboxRow('a', 1)] }
    expect(broken({ messages, seen: without(sending('b')) }, { ...rest, sessions: [['a'], ['b']] })).toEqual([])
    expect(broken({ messages, seen: without(sending('b')) }, { ...rest, sessions: [['a']], unfinished: ['b'] })).toEqual(['lost'])
    expect(broken({ messages, seen: without(sending('b')) }, { ...rest, sessions: [['a']] })).toEqual(['lost'])
  })
  test('a webhook whose turn failed, unless five kills cut it', () => {
    const messages = [message('a'), message('b', { kind: 'webhook', parts: 0 })]
    const rest = { inbox: [inboxRow('a', 1)], outbox: [outboxRow('a', 1)], sessions: [['a']] }
    const cut = without(asked('b'), sending('b')).toSpliced(-2, 0, ...kills(4))
    expect(broken({ messages, seen: cut }, { ...rest, failed: [{ mark: 'b', attempts: 6 }] })).toEqual([])
    expect(broken({ messages, seen: cut }, { ...rest, failed: [{ mark: 'b', attempts: 1 }] })).toEqual(['lost'])
    expect(broken({ messages, seen: cut }, rest)).toEqual(['lost'])
  })
  test('two rows of one message', () => {
    expect(broken({}, { inbox: [inboxRow('a', 1), inboxRow('b', 2), inboxRow('b', 3)] })).toEqual(['lost', 'unique'])
  })
  test('a message that is twice in its session', () => expect(broken({}, { sessions: [['a', 'b', 'b']] })).toEqual(['once']))
  test('a file with a problem, now or after a kill', () => {
    expect(broken({}, { problems: ['page 7 is torn'] })).toEqual(['file'])
    expect(broken({ seen: behind(killed(100), inspected(['a', 'b'], [], ['page 7 is torn'])) })).toEqual(['file'])
  })
  test('a signed message that is refused', () => {
    expect(broken({ seen: behind(posted('b'), { type: 'refused', marks: ['b'], status: 401 }) })).toEqual(['taken'])
  })
  test('a stop that does not end with 0', () => {
    expect(broken({ seen: seen.with(-1, stopped(300, 1)) })).toEqual(['stop'])
    expect(broken({ seen: seen.with(-1, stopped(300, null)) })).toEqual(['stop'])
  })
  test('a request to the model that makes no sense', () => {
    expect(broken({ seen: behind(asked('a'), { type: 'nonsense', detail: 'no mark' }) })).toEqual(['sense'])
  })
})

describe('what has ended never runs again', () => {
  test('the model is asked after the reply went out', () =>
    expect(broken({ seen: [...seen, started(400), asked('a')] })).toContain('ended'))
  test('the model is asked after the store had the end', () => {
    const early = behind(killed(100), inspected(['a', 'b'], ['b']))
    expect(broken({ seen: early })).toEqual(['ended'])
  })
  test('a message begins twice in one life', () => expect(broken({ seen: behind(asked('b'), asked('b')) })).toEqual(['begun']))
  test('the model is told the result of a tool twice in one life', () => {
    expect(broken({ seen: behind(asked('a', true), asked('a', true)) })).toEqual(['begun'])
  })
  test('a message begins anew after its tool call was kept', () => {
    const again = without(sending('a'), sending('b'), asked('b')).toSpliced(-1, 0, asked('a'), sending('a'), asked('b'), sending('b'))
    expect(broken({ seen: again.map((event) => (event.type === 'inspected' ? inspected(['a', 'b']) : event)) })).toEqual(['checkpoint'])
  })
  test('a tool has its effect again after its result was kept', () => {
    expect(broken({ seen: behind(asked('a', true), effect('a')) })).toEqual(['effect'])
    expect(broken({ seen: behind(started(200), effect('a')) })).toEqual(['effect'])
  })
  test('a tool has its effect twice in one life', () => expect(broken({ seen: behind(effect('a'), effect('a')) })).toEqual(['effect']))
  test('a tool that was cut may have it twice', () => {
    const cut = without(asked('a', true), sending('a'), asked('b'), sending('b'))
    const anew = cut.toSpliced(-1, 0, asked('a'), effect('a'), asked('a', true), sending('a'), asked('b'), sending('b'))
    expect(broken({ seen: anew.map((event) => (event.type === 'inspected' ? inspected(['a', 'b']) : event)) })).toEqual([])
  })
})

describe('each reply goes out once', () => {
  const { delivered } = good().history
  const [toA] = delivered

  test('a reply that was sent twice', () => expect(broken({ delivered: [...delivered, ...delivered] })).toEqual(['sent once']))
  test('a reply nobody sent', () => expect(broken({ delivered: toA ? [toA] : [] })).toEqual(['sent']))
  test.each(['queued', 'sending', 'failed'])('a reply that is %s in the end', (state) => {
    expect(broken({}, { outbox: [outboxRow('a', 1), outboxRow('b', 2, { state })] })).toEqual(['sent'])
  })
  test('a reply that was never queued, or twice', () => {
    expect(broken({}, { outbox: [outboxRow('a', 1)] })).toEqual(['queued once'])
    expect(broken({}, { outbox: [outboxRow('a', 1), outboxRow('b', 2), outboxRow('b', 3)] })).toEqual(['queued once'])
  })
  test('a part that is missing', () => {
    expect(broken({ messages: [message('a', { parts: 2 }), message('b')] })).toEqual(['queued once'])
  })

  const inDoubt = (more: Partial<OutboxSeen>) => ({ outbox: [outboxRow('a', 1, { state: 'ambiguous', ...more }), outboxRow('b', 2)] })
  const withFault = (fault: FaultName) => ({ seen: seen.map((event) => (event === seen[6] ? sending('a', { fault }) : event)) })

  test('a reply in doubt for nothing', () => {
    expect(broken({}, inDoubt({}))).toEqual(['ambiguous'])
    expect(broken(withFault('away'), inDoubt({}))).toEqual(['ambiguous'])
  })
  test.each<FaultName>(['lost', 'reset'])('a reply in doubt because its answer was %s', (fault) => {
    expect(broken(withFault(fault), inDoubt({}))).toEqual([])
    expect(broken({ ...withFault(fault), delivered: delivered.slice(1) }, inDoubt({}))).toEqual([])
  })
  test('a reply in doubt because the daemon was killed', () => {
    expect(broken({}, inDoubt({ isCut: true, endedAtMs: 250 }))).toEqual([])
  })
  test('a reply said to be cut when no kill came after it', () => {
    expect(broken({}, inDoubt({ isCut: true, endedAtMs: 50 }))).toEqual(['ambiguous'])
    expect(broken({}, inDoubt({ isCut: true, endedAtMs: 150 }))).toEqual(['ambiguous'])
    const gently = seen.map((event) => (event.type === 'ended' && event.by === 'SIGKILL' ? stopped(100) : event))
    expect(broken({ seen: gently }, inDoubt({ isCut: true, endedAtMs: 250 }))).toEqual(['ambiguous'])
  })
  test('a reply that was refused at first, and then cut before its request got anywhere', () => {
    const refused = (end: Seen) => ({
      seen: [...withFault('away').seen.slice(0, -1), stopped(290), started(300), end, started(500), stopped(600)],
      delivered: delivered.slice(1),
    })
    expect(broken(refused(killed(400)), inDoubt({ isCut: true, attempts: 1, endedAtMs: 550 }))).toEqual([])
    const gently = refused(stopped(400)).seen.map((event) => (event.type === 'ended' ? stopped(event.wallMs) : event))
    const inDoubtBy = inDoubt({ isCut: true, attempts: 1, endedAtMs: 550 })
    expect(broken({ ...refused(stopped(400)), seen: gently }, inDoubtBy)).toEqual(['ambiguous'])
  })
  test('more replies cut by one kill than can be under way', () => {
    const cut = Array.from({ length: 65 }, (_, index) =>
      outboxRow(`x${index}`, 10 + index, { state: 'ambiguous', isCut: true, endedAtMs: 250 }),
    )
    const { outbox } = good().store
    expect(broken({}, { outbox: [...outbox, ...cut.slice(1)] })).toEqual([])
    expect(broken({}, { outbox: [...outbox, ...cut] })).toEqual(['ambiguous'])
  })
  test('a reply in doubt where repeats are dropped', () => {
    const textrelay = { state: 'ambiguous', channel: 'textrelay', isCut: true, endedAtMs: 250 }
    expect(broken({}, inDoubt(textrelay))).toEqual(['ambiguous'])
  })
  test('a reply that was given up too early, or that the provider has', () => {
    const dead = { outbox: [outboxRow('a', 1, { state: 'dead' }), outboxRow('b', 2)] }
    expect(broken({ delivered: delivered.slice(1) }, dead)).toEqual(['dead'])
    const often = [1, 2, 3, 4, 5].map(() => sending('a', { fault: 'away' }))
    const rightly = { outbox: [outboxRow('a', 1, { state: 'dead', attempts: 5 }), outboxRow('b', 2)] }
    const tried = seen.flatMap((event) => (event === seen[6] ? often : [event]))
    expect(broken({ seen: tried, delivered: delivered.slice(1) }, rightly)).toEqual([])
    expect(broken({ seen: tried }, rightly)).toEqual(['dead'])
  })
})

describe('inside a session everything is in order', () => {
  test('turns against the order of acknowledgement', () => expect(broken({}, { sessions: [['b', 'a']] })).toEqual(['order']))
  test('turns against the order of the inbox, where messages came at once', () => {
    const [first, ...rest] = without(posted('a'), acked('a'), posted('b'), acked('b'))
    const atOnce = first ? [first, posted('a', 'b'), acked('a', 'b'), ...rest] : []
    expect(broken({ seen: atOnce })).toEqual([])
    expect(broken({ seen: atOnce }, { inbox: [inboxRow('a', 2), inboxRow('b', 1)] })).toEqual(['order'])
  })
  test('a turn that begins before the one before it has ended', () => {
    const mixed = without(asked('b'), asked('a', true), sending('a')).toSpliced(5, 0, asked('b'), asked('a', true), sending('a'))
    const inOrder = mixed.filter(({ type }) => type !== 'posted' && type !== 'acked')
    expect(broken({ seen: [started(0), posted('a', 'b'), acked('a', 'b'), ...inOrder.slice(1)] })).toEqual(['order'])
  })
  test('replies against the order of their turns, and parts against theirs', () => {
    const swapped = seen.map((event) => (event === seen[6] ? sending('b') : event.type === 'sending' ? sending('a') : event))
    expect(broken({ seen: swapped })).toContain('order')
  })
  test('two senders in one session', () => {
    expect(broken({ messages: [message('a'), message('b', { sender: 'bob' })] })).toEqual(['order'])
  })
  test('other sessions run beside it', () => {
    const messages = [message('a'), message('b', { sender: 'bob' })]
    const [before = [], after = []] = [seen.slice(0, 6), seen.slice(6)]
    const beside = [...before.slice(0, 5), posted('b'), acked('b'), asked('b'), ...before.slice(5), ...after.slice(4)]
    expect(broken({ messages, seen: beside }, { sessions: [['b'], ['a']] })).toEqual([])
  })
})

describe('a turn that waits for a person', () => {
  const question = (state: string): QuestionSeen => ({ mark: 'g', place: 'here', state })
  const told = (what: Told): Seen => ({ type: 'asked', mark: 'g', afterTool: true, told: what })
  const answer = message('y', { answers: { mark: 'g', approve: true } })

  /** The turn of one message asks, waits through six kills, is answered, and ends; `attempts` of it were counted. */
  function gated(gate: Gate, { state = gate as string, what = 'ran' as Told, attempts = 1 } = {}) {
    const prompt = outboxRow('g', 1, { parts: [{ mark: 'g', part: PROMPT_PART }] })
    const history: Partial<History> = {
      messages: [message('g', { gate }), answer],
      seen: [
        ...[started(0), posted('g'), acked('g'), asked('g'), sending('g', { part: PROMPT_PART }), { type: 'waiting', mark: 'g' } as const],
        ...[killed(100), ...kills(5), started(200)],
        ...[posted('y'), acked('y'), told(what), sending('g'), stopped(300)],
      ],
      delivered: [PROMPT_PART, 1].map((part) => ({ channel: 'chatapp', parts: [{ mark: 'g', part }] })),
    }
    const store: Partial<StoreView> = {
      inbox: [inboxRow('g', 1, { attempts }), inboxRow('y', 2, { isAnswer: true })],
      outbox: [prompt, outboxRow('g', 2)],
      questions: [question(state)],
      notices: [{ place: 'here', says: state as 'approved' }],
      lines: what === 'ran' ? ['g'] : [],
      sessions: [['g']],
    }
    return { history, store, prompt }
  }
  const after = (made: ReturnType<typeof gated>, history: Partial<History>, store: Partial<StoreView> = {}) =>
    broken({ ...made.history, ...history }, { ...made.store, ...store })
  const approved = gated('approved')
  const rejected = gated('rejected', { what: 'refused' })
  /** It was aborted, and the answer came too late. */
  const withdrawn = gated('withdrawn', { state: 'cancelled', what: 'refused' })
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

  test('is approved or rejected after six kills, and breaks no rule', () => {
    expect(after(approved, {})).toEqual([])
    expect(after(rejected, {})).toEqual([])
  })
  test('is aborted while somebody answers', () => {
    expect(after(withdrawn, unsent, aborted)).toEqual([])
  })
  test('is aborted right after somebody has rejected its call', () => {
    const notices = [{ place: 'here', says: 'rejected' } as const]
    expect(after(withdrawn, unsent, { ...aborted, questions: [question('rejected')], notices })).toEqual([])
    expect(after(rejected, unsent, { ...aborted, questions: [question('rejected')], notices })).toContain('waited')
  })
  test('is given up through waiting', () => {
    const inbox = [inboxRow('g', 1, { state: 'dead', attempts: 6 }), inboxRow('y', 2, { isAnswer: true })]
    expect(after(approved, {}, { inbox })).toContain('waited')
    expect(after(withdrawn, {}, { ...aborted, questions: [question('pending')], notices: [] })).toContain('waited')
  })
  test('has the kills it waits through counted as attempts', () => {
    expect(after(gated('approved', { attempts: 4 }), {})).toEqual([])
    expect(after(gated('approved', { attempts: 5 }), {})).toEqual(['waited'])
  })
  test('may have the other kills counted', () => {
    const made = gated('approved', { attempts: 6 })
    const last = made.history.seen?.findIndex((event) => event.type === 'asked' && event.afterTool) ?? 0
    expect(after(made, { seen: made.history.seen?.toSpliced(last, 0, ...kills(2)) ?? [] })).toEqual([])
  })
  test('is decided against the person who answered, or by nobody', () => {
    expect(after(gated('approved', { state: 'rejected', what: 'refused' }), {})).toEqual(['decided'])
    expect(after(gated('approved', { state: 'cancelled', what: 'refused' }), {})).toContain('decided')
    expect(after(gated('rejected', { state: 'expired', what: 'refused' }), {})).toContain('decided')
  })
  test('runs an approved call twice or never', () => {
    expect(after(approved, {}, { lines: ['g', 'g'] })).toEqual(['gate'])
    expect(after(approved, {}, { lines: [] })).toEqual(['gate'])
  })
  test('may not have run a call that a kill cut, but once at most', () => {
    const cut = gated('approved', { what: 'cut' })
    expect(after(cut, {})).toEqual([])
    expect(after(cut, {}, { lines: ['g'] })).toEqual([])
    expect(after(cut, {}, { lines: ['g', 'g'] })).toEqual(['gate'])
  })
  test('runs a call that was rejected or withdrawn', () => {
    expect(after(rejected, {}, { lines: ['g'] })).toEqual(['gate'])
    expect(after(withdrawn, unsent, { ...aborted, lines: ['g'] })).toEqual(['gate'])
  })
  test('runs a call that nobody was asked about, or asks about one that needs nobody', () => {
    expect(after(approved, {}, { questions: [], notices: [] })).toEqual(['gate'])
    expect(broken({}, { lines: ['a'] })).toEqual(['gate'])
    expect(
      broken({}, { questions: [{ mark: 'a', place: 'here', state: 'approved' }], notices: [{ place: 'here', says: 'approved' }] }),
    ).toEqual(['gate'])
  })
  test('tells the model something else than what was decided', () => {
    expect(after(gated('rejected', { what: 'cut' }), {})).toEqual(['told'])
    expect(after(gated('approved', { what: 'something else' }), {}, { lines: ['g'] })).toEqual(['told'])
  })
  test('asks twice, or sends its prompt twice', () => {
    expect(after(approved, {}, { questions: [question('approved'), question('approved')] })).toContain('asked once')
    expect(after(approved, {}, { outbox: [approved.prompt, ...(approved.store.outbox ?? [])] })).toEqual(['asked once'])
    const { delivered = [] } = approved.history
    expect(after(approved, { delivered: [...delivered, ...delivered.slice(0, 1)] })).toEqual(['sent once'])
  })
  test('takes an answer for a message, unless the question was withdrawn', () => {
    expect(after(approved, {}, { inbox: [inboxRow('g', 1), inboxRow('y', 2)] })).toContain('answer')
    const turn = {
      outbox: [withdrawn.prompt, outboxRow('y', 2)],
      sessions: [['y']],
      notices: [{ place: 'here', says: 'cancelled' } as const],
    }
    const reply = { delivered: ['g', 'y'].map((mark) => ({ channel: 'chatapp', parts: [{ mark, part: mark === 'g' ? 0 : 1 }] }) as const) }
    const inbox = [inboxRow('g', 1, { state: 'dead' }), inboxRow('y', 2)]
    expect(after(withdrawn, reply, { ...aborted, ...turn, inbox })).toEqual([])
    expect(after(withdrawn, reply, { ...aborted, ...turn })).toContain('answer')
  })
  test('loses an answer', () => {
    expect(after(approved, {}, { inbox: [inboxRow('g', 1)] })).toContain('lost')
    expect(after(approved, {}, { inbox: [inboxRow('g', 1), inboxRow('y', 2, { isAnswer: true, state: 'pending' })] })).toEqual(['answer'])
  })
  test.each(['cancelled', 'late'])('does not say, or says twice, that an answer is %s', (says) => {
    const { notices = [] } = aborted
    const own = notices.filter((notice) => notice.says === says)
    expect(after(withdrawn, unsent, { ...aborted, notices: notices.filter((notice) => notice.says !== says) })).toEqual(['notice'])
    expect(after(withdrawn, unsent, { ...aborted, notices: [...notices, ...own] })).toEqual(['notice'])
  })
})
