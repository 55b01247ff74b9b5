import type { RunningTurn } from '@sluice/agent'
import { turnEnd } from '@sluice/testkit/store-rules/samples'
import { expect, test } from 'vitest'
import { testGateways } from '../testing.ts'

const gateway = testGateways()

type Shown = Readonly<Record<string, unknown>>
interface Answer {
  readonly turns: readonly Shown[]
  readonly running: readonly Shown[]
  readonly timeline: readonly Shown[]
  readonly next: string | null
}

async function arrange() {
  const { request, pair, runtime } = await gateway()
  const operator = await pair('kitchen tablet')
  const client = await pair('phone', null, 'client')
  const get = async (path: string, token = operator.token) => {
    const response = await request(path, { headers: { authorization: `Bearer ${token}` } })
    return { status: response.status, json: (await response.json()) as Answer }
  }
  const { turns } = runtime.store
  const ada = 'channel:testchat/bot/room/ada'
  const failed = { code: 'upstream', message: 'openai:m answered 503' }
  await turns.finish(turnEnd('t1', { endedAtMs: 1000, owner: operator.device, source: 'webhook' }))
  await turns.finish(turnEnd('t2', { endedAtMs: 2000, owner: 'channel:testchat', source: 'testchat', sessionId: ada }))
  await turns.finish(turnEnd('t3', { endedAtMs: 3000, owner: client.device, source: 'ws', status: 'failed', error: failed, messages: [] }))
  const ids = async (query: string, token?: string) => {
    const { turns: listed, running, next } = (await get(`/api/turns${query}`, token)).json
    return { ids: [...running, ...listed].map(({ turn_id }) => turn_id), next }
  }
  return { get, ids, runtime, operator, client, ada }
}

const running = (part: Partial<RunningTurn>): RunningTurn => ({
  id: 'live',
  agent: 'main',
  sessionId: null,
  owner: null,
  source: 'testchat',
  status: 'running',
  isAsking: false,
  input: 'secret words',
  response: null,
  model: null,
  finishReason: null,
  error: null,
  inputTokens: 0,
  outputTokens: 0,
  costUsd: 0,
  attempts: 1,
  starts: 1,
  createdAtMs: 4000,
  endedAtMs: null,
  context: null,
  inbox: null,
  steps: [{ kind: 'tool', name: 'shell', atMs: 4500, tookMs: 10, outcome: 'ok' }],
  ...part,
})

test('turns name their sender: the person on a channel, or the device', async () => {
  const { get } = await arrange()
  const { turns } = (await get('/api/turns')).json
  expect(turns.map(({ turn_id, sender }) => [turn_id, sender])).toEqual([
    ['t3', 'phone'],
    ['t2', 'ada'],
    ['t1', 'kitchen tablet'],
  ])
})

test('turns of a shared room name who wrote the message, also while they run', async () => {
  const { get, runtime } = await arrange()
  const { inbox, turns } = runtime.store
  const room = 'channel:testchat/bot/lounge/'
  const messages = ['bob', 'cleo'].map((sender) => ({
    session: room,
    message: { id: `of ${sender}`, account: 'bot', sender, to: { to: 'lounge' }, text: 'hi' },
  }))
  const [bobs = 0, cleos = 0] = (await inbox.keep({
    ...{ channel: 'testchat', verdict: 'signature', raw: null, receivedAtMs: 100, messages },
  })) as number[]
  await inbox.start(bobs, 'in the room', 5)
  await turns.finish(
    turnEnd('in the room', { sessionId: room, source: 'testchat', endedAtMs: 5000, delivery: { inbox: bobs, replies: [] } }),
  )
  Object.assign(runtime.agent, { live: () => [running({ id: 'live', sessionId: room, inbox: cleos })] })
  const shown = (rows: readonly Readonly<Record<string, unknown>>[]) => rows.map(({ turn_id, sender }) => [turn_id, sender])
  const all = (await get('/api/turns')).json
  expect([...shown(all.running), ...shown(all.turns).slice(0, 1)]).toEqual([
    ['live', 'cleo'],
    ['in the room', 'bob'],
  ])
  const found = (await get('/api/turns?sender=bob')).json
  expect([...shown(found.running), ...shown(found.turns)]).toEqual([['in the room', 'bob']])
  expect((await get('/api/turns/in%20the%20room')).json).toMatchObject({ sender: 'bob' })
  expect((await get('/api/turns/live')).json).toMatchObject({ sender: 'cleo' })
})

test('turns are found by channel, sender, error, status and time, page by page', async () => {
  const { ids } = await arrange()
  const none = { ids: [], next: null }
  expect(await ids('?channel=testchat')).toEqual({ ids: ['t2'], next: null })
  expect(await ids('?sender=KITCHEN')).toEqual({ ids: ['t1'], next: null })
  expect(await ids('?error=503')).toEqual({ ids: ['t3'], next: null })
  expect(await ids('?error=upstream:&status=failed')).toEqual({ ids: ['t3'], next: null })
  expect(await ids('?error=503&status=done')).toEqual(none)
  expect(await ids('?since=1970-01-01T00:00:02.000Z')).toEqual({ ids: ['t3', 't2'], next: null })
  expect(await ids('?since=1970-01-01T00:00:02.000Z&channel=webhook')).toEqual(none)
  const first = await ids('?limit=1')
  expect(first).toEqual({ ids: ['t3'], next: expect.any(String) })
  expect(await ids(`?limit=2&cursor=${first.next}`)).toEqual({ ids: ['t2', 't1'], next: null })
  const found = await ids('?limit=1&sender=e')
  expect(found.ids).toEqual(['t3'])
  expect(await ids(`?limit=1&sender=tablet&cursor=${found.next}`)).toMatchObject({ ids: ['t1'] })
})

test('lists running turns before ended ones on the first page, and shows a client its own', async () => {
  const { ids, get, runtime, client } = await arrange()
  Object.assign(runtime.agent, {
    live: () => [running({ id: 'live-1', isAsking: true }), running({ id: 'live-2', owner: client.device, status: 'queued' })],
  })
  expect((await ids('?limit=1')).ids).toEqual(['live-1', 'live-2', 't3'])
  expect((await ids('?status=running')).ids).toEqual(['live-1'])
  expect((await ids('?status=queued')).ids).toEqual(['live-2'])
  expect((await ids('', client.token)).ids).toEqual(['live-2', 't3'])
  const { next } = await ids('?limit=1')
  expect((await ids(`?limit=1&cursor=${next}`)).ids).toEqual(['t2'])
  const { json } = await get('/api/turns')
  expect(json.running[0]).toMatchObject({ waits_for_person: true, ended_at: null })
  expect(JSON.stringify(json)).not.toContain('secret words')
  expect((await get('/api/turns/live-1')).json).toMatchObject({ status: 'running', timeline: [{ kind: 'tool', name: 'shell' }] })
  expect((await get('/api/turns/live-1', client.token)).status).toBe(404)
})

test('the timeline has the message, calls, approvals, end and replies in their order; a client does not see deliveries', async () => {
  const { get, runtime, ada } = await arrange()
  const { inbox, turns, approvals, outbox } = runtime.store
  const message = { id: 'm1', account: 'bot', sender: 'ada', to: { to: 'room' }, text: 'hi' }
  const arrival = { channel: 'testchat', verdict: 'signature', raw: null, receivedAtMs: 100, messages: [{ session: ada, message }] }
  const [number] = (await inbox.keep(arrival)) as number[]
  await inbox.start(number ?? 0, 'asked', 5)
  await approvals.open(
    {
      ...{ runId: 'asked', stepId: 'call-1', gate: 'tool', workflow: 'shell', title: 'Run shell', message: 'ls', token: 'token' },
      ...{ approveKeywords: [], rejectKeywords: [], createdAtMs: 300, expiresAtMs: null },
    },
    [],
  )
  const steps = [
    {
      kind: 'model',
      name: 'openai:m',
      atMs: 200,
      tookMs: 50,
      outcome: 'ok',
      finish: 'tool-calls',
      inputTokens: 3,
      outputTokens: 4,
      costUsd: 0.5,
    },
    { kind: 'tool', name: 'shell', atMs: 290, tookMs: 60, outcome: 'ok' },
  ] as const
  const reply = {
    ...{ channel: 'testchat', account: 'bot', to: { to: 'room' }, text: 'yes', part: 1, parts: 1 },
    clientId: 'c1',
    turnId: 'asked',
    createdAtMs: 400,
  }
  await turns.finish(
    turnEnd('asked', { sessionId: ada, createdAtMs: 100, endedAtMs: 390, steps, delivery: { inbox: number ?? 0, replies: [reply] } }),
  )
  expect(await outbox.list({ limit: 1 })).toHaveLength(1)
  const { json } = await get('/api/turns/asked')
  expect(json.timeline.map(({ kind, name, number: of, took_ms }) => [kind, name, of, took_ms])).toEqual([
    ['message', 'testchat', number, null],
    ['model', 'openai:m', null, 50],
    ['tool', 'shell', null, 60],
    ['approval', 'Run shell', null, 90],
    ['end', null, null, 290],
    ['reply', 'testchat', 1, null],
  ])
  expect(json.timeline[1]).toMatchObject({ state: 'ok', finish_reason: 'tool-calls', input_tokens: 3, cost_usd: 0.5 })
})
