import type { ToolApprovalRequest } from '@sluice/agent'
import { APPROVAL_MESSAGE_CHARS_MAX, AppError, type SopRun, type Store } from '@sluice/sdk'
import { sessionOf } from '@sluice/sop/session'
import { describe, expect, test } from 'vitest'
import { approvalBenches, richChannel } from './testing/approval-bench.ts'
import { createToolApprover, toolApprovalRequest } from './tool-approver.ts'

const bench = approvalBenches()

const REQUEST: ToolApprovalRequest = {
  callId: 'call-1',
  tool: 'shell',
  summary: 'command: ls',
  callHash: 'hash of ls',
  decider: 'asker',
  standing: 'listed',
  sources: [],
  agent: 'main',
  turn: 't1',
  session: null,
  inbox: null,
}
const KEY = { runId: 't1', stepId: 'call-1' }

/** A run that a message of `ann` in a room started, who is an operator there. */
const RUN: SopRun = {
  id: 'run-7',
  sop: 'deploy',
  version: '1.0.0',
  description: '',
  priority: 'normal',
  mode: 'auto',
  steps: [1, 2].map((number) => ({
    number,
    title: 'Look',
    body: '',
    tools: ['shell'],
    requiresConfirmation: false,
    kind: 'execute',
    input: null,
    output: null,
  })),
  event: {
    source: 'webhook',
    topic: '/plain',
    payload: null,
    atMs: 1,
    by: 'plain:ann',
    starter: 'plain:ann',
    standing: 'operator',
    origin: { channel: 'plain', account: 'bot', to: { to: 'room' }, sender: 'ann' },
  },
  status: 'running',
  step: 2,
  gate: null,
  gates: 0,
  attempt: null,
  report: null,
  results: [],
  startedAtMs: 1,
  endedAtMs: null,
  reason: null,
}

async function arrange(options: Parameters<typeof bench>[0] = {}) {
  const made = await bench(options)
  const ask = createToolApprover({
    approvals: made.approvals,
    inbox: made.store.inbox,
    run: async (id) => (id === RUN.id ? RUN : undefined),
    hasOperator: async () => false,
    timeoutSecs: () => 300,
  })
  return { ...made, ask }
}

/** A message that the last run of the daemon left unfinished. */
async function waitingMessage(store: Store): Promise<number> {
  const message = { id: 'm1', account: 'bot', sender: 'ann', to: { to: 'room' }, text: 'list' }
  const [number = 0] = await store.inbox.keep({
    channel: 'workspace',
    raw: null,
    verdict: 'test',
    receivedAtMs: 0,
    messages: [{ message, session: 'workspace:room' }],
  })
  return Number(number)
}

test('returns undefined and stores nothing without a conversation to ask in', async () => {
  const { ask, approvals } = await arrange()
  expect(await ask(REQUEST, new AbortController().signal)).toBeUndefined()
  expect(await approvals.get(KEY)).toBeUndefined()
})

test('asks in the conversation that the turn answers', async () => {
  const { ask, say, sent, settle } = await arrange({ channels: [{ name: 'plain' }] })
  await say('plain', { to: { to: 'room' }, text: 'list the files' })
  const answer = ask({ ...REQUEST, inbox: 1 }, new AbortController().signal)
  await settle()
  expect(sent.at(-1)).toMatchObject({ to: { to: 'room' }, text: expect.stringMatching(/^shell wants to run\n\ncommand: ls\n\nReply with/) })
  await say('plain', { to: { to: 'room' }, text: 'yes' })
  expect(await answer).toMatchObject({ by: 'plain:ann' })
})

describe('a prompt that the platform refuses', () => {
  const blocked = {
    name: 'plain',
    send: () => Promise.reject(new AppError('forbidden', 'the bot was blocked by the user')),
  }

  test('ends the question where no one else is asked', async () => {
    const { ask, say, approvals } = await arrange({ channels: [blocked] })
    await say('plain', { to: { to: 'room' }, text: 'list the files' })
    expect(await ask({ ...REQUEST, inbox: 1 }, new AbortController().signal)).toBeUndefined()
    expect(await approvals.get(KEY)).toMatchObject({ state: 'cancelled', by: 'system' })
  })

  test.for<[where: string, options: Parameters<typeof bench>[0]]>([
    ['on the dashboard', { channels: [blocked], hasOperator: true }],
    ['in another conversation', { channels: [blocked, { name: 'other' }], targets: ['other:ops'] }],
  ])('leaves the question open where an operator can answer it %s', async ([, options]) => {
    const { ask, say, approvals, settle } = await arrange({ operators: ['ann'], ...options })
    await say('plain', { to: { to: 'room' }, text: 'list the files' })
    const answer = ask({ ...REQUEST, inbox: 1 }, new AbortController().signal)
    await settle()
    expect(await approvals.get(KEY)).toMatchObject({ state: 'pending' })
    await approvals.decide(KEY, { state: 'approved', by: 'device:ada', who: { standing: 'operator', isAsked: true } })
    expect(await answer).toMatchObject({ by: 'device:ada' })
  })
})

test.for([
  ['by id', {}, 'plain:ann'],
  ['by the name that this person has chosen, and id', { name: 'Ann\nBob' }, 'Ann Bob (plain:ann)'],
] as const)('the prompt in a shared room names the person who decides %s', async ([, chosen, person]) => {
  const { ask, say, sent, settle, approvals } = await arrange({ channels: [{ name: 'plain' }] })
  await say('plain', { to: { to: 'room' }, text: 'list the files', ...chosen })
  const answer = ask({ ...REQUEST, inbox: 1, session: 'channel:plain/bot/room/' }, new AbortController().signal)
  await settle()
  expect(sent.at(-1)?.text).toContain(`shell wants to run for ${person}\n\ncommand: ls\n`)
  await approvals.decide(KEY, { state: 'cancelled', by: 'system' })
  expect(await answer).toBe(false)
})

test('a device that answers itself is asked, and no conversation; a call that only operators decide is not its own', async () => {
  const { ask, sent, settle, approvals } = await arrange({ channels: [richChannel('workspace')], targets: ['workspace'] })
  const own = { ...REQUEST, owner: 'phone', standing: 'client', asksOwner: true } as const
  const answer = ask(own, new AbortController().signal)
  await settle()
  expect(sent).toEqual([])
  expect(await approvals.get(KEY)).toMatchObject({ state: 'pending', owner: 'phone' })
  await approvals.decide(KEY, { state: 'approved', by: 'device:phone', who: { standing: 'client', isAsked: true } })
  expect(await answer).toMatchObject({ by: 'device:phone' })
  const alone = await arrange()
  expect(await alone.ask({ ...own, decider: 'operator' }, new AbortController().signal)).toBeUndefined()
})

describe('a call that only an operator decides', () => {
  const OPERATORS = { ...REQUEST, inbox: 1, decider: 'operator', standing: 'stranger' } as const
  const channels = [richChannel('workspace'), { name: 'plain' }]

  test('is asked of the operators, not in the conversation of the turn', async () => {
    const { ask, say, sent, settle, approvals } = await arrange({ channels, targets: ['workspace'] })
    await say('plain', { to: { to: 'room' }, sender: 'eve', text: 'list the files' })
    const before = sent.length
    const answer = ask(OPERATORS, new AbortController().signal)
    await settle()
    expect(sent.slice(before).map(({ channel, to }) => [channel, to.to])).toEqual([['workspace', 'ops']])
    await say('plain', { to: { to: 'room' }, sender: 'eve', text: 'approve' })
    await say('workspace', { sender: 'eve', inReplyTo: '1', text: 'approve' })
    expect(await approvals.get(KEY)).toMatchObject({ state: 'pending', decider: 'operator', standing: 'stranger' })
    await say('workspace', { inReplyTo: '1', text: 'approve' })
    expect(await answer).toEqual({ by: 'workspace:ann', standing: 'operator' })
  })

  test('is asked of the operators if its asker is the source of untrusted text', async () => {
    const { ask, say, sent, settle, approvals } = await arrange({ channels, targets: ['workspace'] })
    await say('plain', { to: { to: 'room' }, text: 'list the files' })
    const before = sent.length
    const sources = ['http_request https://a.test', 'message from ann on plain']
    const answer = ask({ ...REQUEST, inbox: 1, sources }, new AbortController().signal)
    await settle()
    expect(sent.slice(before).map(({ channel }) => channel)).toEqual(['workspace'])
    await say('plain', { to: { to: 'room' }, text: 'approve' })
    expect(await approvals.get(KEY)).toMatchObject({ state: 'pending', sources })
    await approvals.decide(KEY, { state: 'approved', by: 'device:d1', who: { standing: 'operator', isAsked: false } })
    expect(await answer).toEqual({ by: 'device:d1', standing: 'operator' })
  })

  test('is asked in any conversation that [approvals] channels names, and answered there by a named sender', async () => {
    const { ask, say, sent, settle, approvals } = await arrange({ channels, targets: ['plain:Den'] })
    await say('plain', { to: { to: 'room' }, sender: 'eve', text: 'list the files' })
    const before = sent.length
    const answer = ask(OPERATORS, new AbortController().signal)
    await settle()
    expect(sent.slice(before).map(({ channel, to }) => [channel, to.to])).toEqual([['plain', 'Den']])
    await say('plain', { to: { to: 'Den' }, sender: 'eve', text: 'approve' })
    await say('plain', { to: { to: 'den' }, text: 'approve' })
    expect(await approvals.get(KEY)).toMatchObject({ state: 'pending' })
    await say('plain', { to: { to: 'Den' }, text: 'approve' })
    expect(await answer).toEqual({ by: 'plain:ann', standing: 'operator' })
  })

  test('is not asked where no operator can answer, though its own conversation could', async () => {
    const { ask, say, approvals } = await arrange({ channels })
    await say('plain', { to: { to: 'room' }, sender: 'eve', text: 'list the files' })
    expect(await ask(OPERATORS, new AbortController().signal)).toBeUndefined()
    expect(await approvals.get(KEY)).toBeUndefined()
  })

  test('waits for an operator with a device, without a prompt', async () => {
    const { say, sent, settle, approvals, store } = await arrange({ channels })
    const about = { approvals, inbox: store.inbox, run: async () => undefined, timeoutSecs: () => 300 }
    const ask = createToolApprover({ ...about, hasOperator: async () => true })
    await say('plain', { to: { to: 'room' }, sender: 'eve', text: 'list the files' })
    const before = sent.length
    const answer = ask(OPERATORS, new AbortController().signal)
    await settle()
    await approvals.decide(KEY, { state: 'approved', by: 'device:d1', who: { standing: 'operator', isAsked: false } })
    expect(await answer).toEqual({ by: 'device:d1', standing: 'operator' })
    expect(sent).toHaveLength(before)
  })

  test('is asked about again if its question has asked others', async () => {
    const { ask, say, settle, approvals } = await arrange({ channels, targets: ['workspace'] })
    await say('plain', { to: { to: 'room' }, text: 'list the files' })
    void ask({ ...REQUEST, inbox: 1 }, new AbortController().signal)
    await settle()
    const again = ask({ ...OPERATORS, standing: 'listed' }, new AbortController().signal)
    await settle()
    await say('plain', { to: { to: 'room' }, text: 'yes' })
    expect(await approvals.get(KEY)).toMatchObject({ state: 'approved', byStanding: 'listed' })
    await approvals.decide(
      { ...KEY, stepId: 'call-1.operator' },
      { state: 'approved', by: 'device:d1', who: { standing: 'operator', isAsked: false } },
    )
    expect(await again).toEqual({ by: 'device:d1', standing: 'operator' })
  })
})

test('names an agent that is not the main agent', async () => {
  const { ask, sent, settle } = await arrange({ channels: [{ name: 'plain' }] })
  const ended = new AbortController()
  const answer = ask({ ...REQUEST, agent: 'support', turn: 'run-7' }, ended.signal)
  await settle()
  expect(sent.at(-1)?.text).toMatch(/^deploy: step 2 of 2: shell of agent support wants to run\n\n/)
  expect(toolApprovalRequest({ ...REQUEST, agent: 'support' }, 1).title).toBe('shell of agent support wants to run')
  ended.abort()
  await answer
})

test.each<[what: string, from: Partial<ToolApprovalRequest>]>([
  ['a step that the agent works on', { turn: 't9', session: sessionOf({ id: 'run-7' }) }],
  ['a step that another agent works on', { turn: 't9', session: sessionOf({ id: 'run-7', agent: 'support' }) }],
  ['a step without a model', { turn: 'run-7', session: null }],
])('asks for %s in the conversation that started the procedure', async (_, from) => {
  const { ask, say, sent, settle } = await arrange({ channels: [{ name: 'plain' }] })
  const answer = ask({ ...REQUEST, ...from }, new AbortController().signal)
  await settle()
  expect(sent).toMatchObject([
    { to: { to: 'room' }, text: expect.stringMatching(/^deploy: step 2 of 2: shell wants to run\n\ncommand: ls\n\nReply with/) },
  ])
  await say('plain', { to: { to: 'room' }, sender: 'bob', text: 'yes' })
  await say('plain', { to: { to: 'room' }, text: 'no' })
  expect(await answer).toBe(false)
})

test.each([
  ['the device of its turn', { turn: 't1', owner: 'd1' }, 'd1'],
  ['the device that has started the procedure', { turn: 'run-7', owner: 'sop' }, 'd7'],
])('opens a question that belongs to %s', async (_, from, owner) => {
  const { approvals, settle } = await arrange({ channels: [richChannel('workspace')], targets: ['workspace'] })
  const ask = createToolApprover({
    approvals,
    inbox: { get: async () => undefined },
    run: async (id) => (id === RUN.id ? { ...RUN, event: { ...RUN.event, starter: 'device:d7' } } : undefined),
    hasOperator: async () => false,
    timeoutSecs: () => 300,
  })
  const aborting = new AbortController()
  const answer = ask({ ...REQUEST, ...from }, aborting.signal)
  await settle()
  expect(await approvals.get({ ...KEY, runId: from.turn })).toMatchObject({ owner })
  aborting.abort()
  await answer
})

test.each<[who: string, event: Partial<SopRun['event']>]>([
  ['a listed sender', { standing: 'listed' }],
  ['a device of the role client', { standing: 'client', starter: 'device:d7', by: 'device:d7' }],
  ['an event', {}],
])('asks only operators about a step of a run that %s has started', async (_, about) => {
  const { approvals, sent, settle } = await arrange({ channels: [{ name: 'plain' }] })
  const { starter: _starter, standing: _standing, ...event } = RUN.event
  const asker = (hasOperator: boolean) =>
    createToolApprover({
      approvals,
      inbox: { get: async () => undefined },
      run: async (id) => (id === RUN.id ? { ...RUN, event: { ...event, ...about } } : undefined),
      hasOperator: async () => hasOperator,
      timeoutSecs: () => 300,
    })
  const request = { ...REQUEST, turn: RUN.id, standing: 'operator' } as const
  expect(await asker(false)(request, new AbortController().signal)).toBeUndefined()
  const answer = asker(true)(request, new AbortController().signal)
  await settle()
  expect(sent).toEqual([])
  const key = { ...KEY, runId: RUN.id }
  for (const standing of ['client', 'listed'] as const)
    await expect(approvals.decide(key, { state: 'approved', by: 'x', who: { standing, isAsked: true } })).rejects.toMatchObject({
      code: 'forbidden',
    })
  await approvals.decide(key, { state: 'approved', by: 'device:d1', who: { standing: 'operator', isAsked: false } })
  expect(await answer).toEqual({ by: 'device:d1', standing: 'operator' })
})

test('takes no run from the session of another client', async () => {
  const { ask } = await arrange({ channels: [{ name: 'plain' }] })
  expect(await ask({ ...REQUEST, session: 'channel:plain/run-7' }, new AbortController().signal)).toBeUndefined()
  expect(await ask({ ...REQUEST, session: sessionOf({ id: 'run-8' }) }, new AbortController().signal)).toBeUndefined()
})

test('asks in [approvals] channels, and a timeout refuses', async () => {
  const { ask, sent, clock, settle, approvals } = await arrange({ channels: [richChannel('workspace')], targets: ['workspace'] })
  const answer = ask(REQUEST, new AbortController().signal)
  await settle()
  expect(sent).toMatchObject([{ channel: 'workspace', topic: 'Approval: shell' }])
  await clock.advance(300_000)
  expect(await answer).toBe(false)
  expect(await approvals.get(KEY)).toMatchObject({ state: 'expired', by: 'timeout' })
})

test('withdraws the question when the turn is aborted', async () => {
  const { ask, settle, approvals } = await arrange({ channels: [richChannel('workspace')], targets: ['workspace'] })
  const aborting = new AbortController()
  const answer = ask(REQUEST, aborting.signal)
  await settle()
  aborting.abort()
  expect(await answer).toBe(false)
  expect(await approvals.get(KEY)).toMatchObject({ state: 'cancelled', by: 'system' })
})

test('finds the answer that was given during a restart', async () => {
  const rich = { channels: [richChannel('workspace')], targets: ['workspace'] }
  const first = await arrange(rich)
  const cut = new AbortController()
  const unanswered = first.ask(REQUEST, cut.signal)
  await first.settle()
  await first.approvals.stop()
  cut.abort()
  expect(await unanswered).toBe(false)
  await first.stop()
  const { ask, say, sent } = await arrange({ ...rich, folder: first.folder, clock: first.clock })
  await say('workspace', { to: { to: 'ops', thread: '1' }, text: 'approve' })
  const before = sent.length
  expect(await ask(REQUEST, new AbortController().signal)).toMatchObject({ by: 'workspace:ann' })
  expect(sent).toHaveLength(before)
})

test('withdraws the prompt of a message that is given up', async () => {
  const { ask, say, sent, settle, store, approvals, deliveries } = await arrange({
    channels: [richChannel('workspace')],
    targets: ['workspace'],
    turn: () => {
      throw new AppError('aborted', 'the turn was aborted')
    },
  })
  const number = await waitingMessage(store)
  await store.inbox.start(number, REQUEST.turn, 5)
  void ask(REQUEST, new AbortController().signal)
  await settle()
  expect(sent.at(-1)?.text).toMatch(/^shell wants to run/)
  deliveries.wake()
  await settle()
  expect(await approvals.get(KEY)).toMatchObject({ state: 'cancelled', by: 'system' })
  const [said, edited] = sent.slice(-2)
  expect(said?.text).toMatch(/^Withdrawn: the turn or run that asked has ended/)
  expect(edited).toMatchObject({ isEdit: true, text: expect.stringContaining('Withdrawn') })
  expect(edited?.buttons ?? []).toEqual([])
  await say('workspace', { to: { to: 'ops', thread: '1' }, text: 'approve' })
  expect(sent.at(-1)?.text).toMatch(/^Already withdrawn/)
  expect(await approvals.get(KEY)).toMatchObject({ state: 'cancelled' })
})

test('asks again for a call that differs from the approved one', async () => {
  const { ask, say, settle, approvals } = await arrange({ channels: [richChannel('workspace')], targets: ['workspace'] })
  const first = ask(REQUEST, new AbortController().signal)
  await settle()
  await say('workspace', { to: { to: 'ops', thread: '1' }, text: 'approve' })
  expect(await first).toMatchObject({ by: 'workspace:ann' })
  expect(await ask(REQUEST, new AbortController().signal)).toMatchObject({ by: 'workspace:ann' })
  const aborting = new AbortController()
  const other = ask({ ...REQUEST, callHash: 'hash of another' }, aborting.signal)
  await settle()
  expect(await approvals.get(KEY)).toMatchObject({ state: 'approved', callHash: 'hash of ls' })
  expect(await approvals.get({ ...KEY, stepId: 'call-1.hash of another' })).toMatchObject({ state: 'pending', callHash: 'hash of another' })
  aborting.abort()
  expect(await other).toBe(false)
})

test('a question about a call after untrusted text names the source after the call', () => {
  const { message } = toolApprovalRequest({ ...REQUEST, untrusted: 'http_request https://evil.test/' }, 1)
  expect(message).toMatch(/^command: ls\n\nYou are asked because .*\(http_request https:\/\/evil\.test\/\)/)
  const long = toolApprovalRequest({ ...REQUEST, summary: 'x'.repeat(APPROVAL_MESSAGE_CHARS_MAX), untrusted: 'browser' }, 1).message
  expect(long).toHaveLength(APPROVAL_MESSAGE_CHARS_MAX)
  expect(long).toContain('(browser)')
})
