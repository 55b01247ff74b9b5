import type { Arrival, NewReply } from '@sluice/sdk'
import { describe, expect, test } from 'vitest'
import { type TestGateway, type TestGatewayOptions, testGateways } from '../testing.ts'

const gateway = testGateways()

const AT_MS = Date.parse('2026-01-01T00:00:00.000Z')

const arrival = (id: string, changes: Partial<Arrival> = {}): Arrival => ({
  channel: 'testchat',
  verdict: 'x-signature',
  raw: null,
  receivedAtMs: AT_MS,
  messages: [
    {
      session: 'channel:testchat/room',
      message: {
        id,
        account: 'bot',
        sender: 'alice',
        to: { to: 'room', replyTo: id },
        text: 'grüße',
        sentAtMs: AT_MS - 1000,
        attachments: [{ kind: 'image', name: 'cat.png', mime: 'image/png', source: { id: 'media-1' } }],
      },
    },
  ],
  ...changes,
})

const reply = (changes: Partial<NewReply> = {}): NewReply => ({
  channel: 'testchat',
  account: 'bot',
  to: { to: 'room', thread: 't' },
  text: 'hello back',
  part: 1,
  parts: 1,
  clientId: 'client-1',
  turnId: null,
  createdAtMs: AT_MS,
  ...changes,
})

async function arrange(options: TestGatewayOptions = {}) {
  const made = gateway(options)
  const { token } = await made.pair()
  const call = (method: string, path: string, bearer = token) =>
    made.request(`/api/deliveries${path}`, { method, headers: { authorization: `Bearer ${bearer}` } })
  const json = async (method: string, path: string): Promise<unknown> => (await call(method, path)).json()
  const post = async (path: string, body: unknown): Promise<unknown> => {
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
    return (await made.request(`/api/deliveries${path}`, { method: 'POST', headers, body: JSON.stringify(body) })).json()
  }
  return { ...made, call, json, post, keep: keeper(made), answer: answerer(made) }
}

/** Stores one message; returns its number. */
const keeper =
  ({ store }: TestGateway) =>
  async (id: string, changes?: Partial<Arrival>): Promise<number> => {
    const kept = await store.inbox.keep(arrival(id, changes))
    return kept === 'replayed' ? 0 : (kept[0] ?? 0)
  }

/** Stores the end of a message's turn, with one reply. */
const answerer =
  ({ store }: TestGateway) =>
  async (number: number): Promise<void> => {
    const turnId = `turn-${number}`
    await store.inbox.start(number, turnId, 5)
    await store.turns.finish({
      id: turnId,
      agent: 'main',
      sessionId: 'channel:testchat/room',
      source: 'testchat',
      status: 'done',
      input: 'grüße',
      response: 'hello back',
      model: 'echo',
      error: null,
      inputTokens: 1,
      outputTokens: 1,
      costUsd: 0,
      attempts: 1,
      createdAtMs: AT_MS,
      endedAtMs: AT_MS,
      messages: [],
      delivery: { inbox: number, replies: [reply({ turnId })] },
    })
  }

describe('the inbox', () => {
  test('is listed newest first, in pages, filtered by state and channel', async () => {
    const { keep, json, store } = await arrange()
    const [one, two] = [await keep('m1'), await keep('m2')]
    const other = await keep('m3', { channel: 'otherchat' })
    await store.inbox.start(one, 'turn-1', 5)
    await store.inbox.markDead(one, { error: 'no model', atMs: AT_MS })
    expect(await json('GET', '/inbox')).toMatchObject({ messages: [{ number: other }, { number: two }, { number: one }] })
    expect(await json('GET', '/inbox?limit=1')).toMatchObject({ messages: [{ number: other }] })
    expect(await json('GET', `/inbox?before=${other}&limit=1`)).toMatchObject({ messages: [{ number: two }] })
    expect(await json('GET', '/inbox?channel=otherchat')).toMatchObject({ messages: [{ number: other }] })
    expect(await json('GET', '/inbox?state=dead')).toEqual({
      next: null,
      messages: [
        {
          number: one,
          channel: 'testchat',
          account: 'bot',
          message_id: 'm1',
          sender: 'alice',
          session: 'channel:testchat/room',
          state: 'dead',
          attempts: 1,
          received_at: '2026-01-01T00:00:00.000Z',
          next_at: null,
          ended_at: '2026-01-01T00:00:00.000Z',
          turn_id: 'turn-1',
          error: 'no model',
        },
      ],
    })
  })

  test('is searched by sender and by text, in any case, a bounded number of messages at a time', async () => {
    const { keep, json, store } = await arrange()
    const from = (sender: string, text: string): Partial<Arrival> => {
      const [one] = arrival('x').messages
      return one ? { messages: [{ ...one, message: { ...one.message, id: `${sender} ${text}`, sender, text } }] } : {}
    }
    const bob = await keep('m1', from('Bob', 'Where is my ORDER 17?'))
    const failed = await keep('m2')
    await store.inbox.start(failed, 'turn-1', 5)
    await store.inbox.markDead(failed, { error: 'no order was found', atMs: AT_MS })
    expect(await json('GET', '/inbox?sender=bO')).toMatchObject({ messages: [{ number: bob }], next: null })
    expect(await json('GET', '/inbox?text=Order')).toMatchObject({ messages: [{ number: failed }, { number: bob }], next: null })
    expect(await json('GET', '/inbox?text=GR%C3%9C%C3%9FE')).toMatchObject({ messages: [{ number: failed }] })
    expect(await json('GET', '/inbox?text=order&sender=bob')).toMatchObject({ messages: [{ number: bob }] })
    expect(await json('GET', '/inbox?text=order&state=dead&channel=testchat')).toMatchObject({ messages: [{ number: failed }] })
    expect(await json('GET', '/inbox?text=no%25such')).toEqual({ messages: [], next: null })
    expect(await json('GET', '/inbox?text=order&limit=1')).toMatchObject({ messages: [{ number: failed }], next: failed })
    expect(await json('GET', `/inbox?text=order&limit=1&before=${failed}`)).toMatchObject({ messages: [{ number: bob }], next: null })
    const many = await Promise.all(Array.from({ length: 1000 }, (_, number) => keep(`other ${number}`)))
    let next: number | null = Math.max(...many) + 1
    let pages = 0
    for (; next !== null; pages++) {
      const answer = (await json('GET', `/inbox?text=order%2017&before=${next}`)) as { messages: { number: number }[]; next: number | null }
      next = answer.next
      if (next === null) expect(answer.messages).toMatchObject([{ number: bob }])
      else expect(answer.messages).toEqual([])
    }
    expect(pages).toBe(3)
  })

  test('shows a message with its request, its turn and its replies', async () => {
    const { keep, answer, json } = await arrange()
    const number = await keep('m1')
    await answer(number)
    expect(await json('GET', `/inbox/${number}`)).toMatchObject({
      number,
      state: 'done',
      verdict: 'x-signature',
      message: {
        to: { to: 'room', thread: null, reply_to: 'm1', more: null },
        text: 'grüße',
        sent_at: '2025-12-31T23:59:59.000Z',
        attachments: [{ kind: 'image', name: 'cat.png', mime: 'image/png', url: null, id: 'media-1' }],
      },
      turn: { turn_id: `turn-${number}`, status: 'done', model: 'echo', response: 'hello back', error: null },
      replies: [
        { state: 'queued', text: 'hello back', inbox: number, turn_id: `turn-${number}`, to: { to: 'room', thread: 't', reply_to: null } },
      ],
      raw: expect.stringMatching(/^\{"id":"m1",.*"text":"grüße"/),
    })
  })

  test('shows a request that is not text in base64', async () => {
    const { keep, json } = await arrange()
    const number = await keep('m1', { raw: Buffer.from([0xff, 0x00, 0x01]) })
    const entry = (await json('GET', `/inbox/${number}`)) as object
    expect(entry).toMatchObject({ raw_base64: '/wAB', turn: null, replies: [] })
    expect(entry).not.toHaveProperty('raw')
  })

  test('replays a dead message, and refuses others with the reason', async () => {
    const { keep, call, json, store } = await arrange()
    const number = await keep('m1')
    const waiting = await call('POST', `/inbox/${number}/replay`)
    expect([waiting.status, await waiting.json()]).toEqual([
      409,
      { error: `Message ${number} waits for its turn as it is`, code: 'conflict' },
    ])
    await store.inbox.start(number, 'turn-1', 5)
    expect(await json('POST', `/inbox/${number}/replay`)).toMatchObject({ error: expect.stringContaining('is running right now') })
    await store.inbox.markDead(number, { error: 'no model', atMs: AT_MS })
    expect(await json('POST', `/inbox/${number}/replay`)).toEqual({ replayed: true, number })
    expect(await store.inbox.get(number)).toMatchObject({ state: 'pending', attempts: 0 })
    expect(await store.sops.audit({ limit: 9 })).toMatchObject([
      { kind: 'delivery_replayed', by: expect.stringMatching(/^device:/), detail: { box: 'inbox', count: 1, numbers: [number] } },
    ])
  })
})

test('discards a dead letter of either box, refuses others with the reason, and records who did it', async () => {
  const { keep, call, json, store } = await arrange()
  const number = await keep('m1')
  expect(await json('POST', `/inbox/${number}/discard`)).toEqual({
    error: `Message ${number} is pending: only a dead or limited message can be discarded`,
    code: 'conflict',
  })
  await store.inbox.markDead(number, { error: 'no model', atMs: AT_MS })
  expect(await json('POST', `/inbox/${number}/discard`)).toEqual({ discarded: true, number })
  expect(await json('GET', '/inbox?state=discarded')).toMatchObject({ messages: [{ number, state: 'discarded' }] })
  const [sent = 0] = await store.outbox.add([reply()])
  expect((await call('POST', `/outbox/${sent}/discard`)).status).toBe(409)
  await store.outbox.start(sent)
  await store.outbox.giveUp(sent, { state: 'dead', error: 'refused', atMs: AT_MS })
  expect(await json('POST', `/outbox/${sent}/discard`)).toEqual({ discarded: true, number: sent })
  expect(await json('GET', '')).toMatchObject({ inbox: { dead: 0 }, outbox: { dead: 0 } })
  for (const box of ['inbox', 'outbox']) expect((await call('POST', `/${box}/999/discard`)).status).toBe(404)
  const by = expect.stringMatching(/^device:/)
  expect(await store.sops.audit({ limit: 9 })).toMatchObject([
    { kind: 'delivery_discarded', by, detail: { box: 'inbox', number, channel: 'testchat' } },
    { kind: 'delivery_discarded', by, detail: { box: 'outbox', number: sent, channel: 'testchat' } },
  ])
})

test('shows a message without its dropped content, and refuses its replay', async () => {
  const { keep, answer, json, store } = await arrange()
  const number = await keep('m1')
  await answer(number)
  await store.prune({ endedBeforeMs: 0, idsBeforeMs: 0, keysBeforeMs: 0, historyBeforeMs: 0, bytesMax: 0, nowMs: AT_MS, limit: 100 })
  expect(await json('GET', `/inbox/${number}`)).toMatchObject({ state: 'done', message: null, raw: null })
  expect(await json('POST', `/inbox/${number}/replay`)).toEqual({
    error: `Message ${number} is too old: its content is no longer kept`,
    code: 'conflict',
  })
})

describe('the outbox', () => {
  test('is searched by receiver and by text', async () => {
    const { json, store } = await arrange()
    const [one = 0, two = 0] = await store.outbox.add([reply(), reply({ to: { to: 'Kitchen' }, text: 'Dinner is ready' })])
    expect(await json('GET', '/outbox?to=kitchen')).toMatchObject({ replies: [{ number: two }], next: null })
    expect(await json('GET', '/outbox?text=BACK')).toMatchObject({ replies: [{ number: one }], next: null })
    expect(await json('GET', '/outbox?to=kitchen&text=back')).toEqual({ replies: [], next: null })
    expect(await json('GET', '/outbox?text=')).toMatchObject({ code: 'invalid_request' })
  })

  test('is listed newest first, in pages, filtered by state and channel', async () => {
    const { json, store } = await arrange()
    const [one, two] = await store.outbox.add([reply(), reply({ channel: 'otherchat' })])
    await store.outbox.start(one ?? 0)
    await store.outbox.giveUp(one ?? 0, { state: 'ambiguous', error: 'cut off', atMs: AT_MS })
    expect(await json('GET', '/outbox')).toMatchObject({ replies: [{ number: two }, { number: one }], next: null })
    expect(await json('GET', '/outbox?limit=1')).toMatchObject({ replies: [{ number: two }], next: two })
    expect(await json('GET', '/outbox?limit=1&channel=otherchat')).toMatchObject({ replies: [{ number: two }], next: null })
    expect(await json('GET', `/outbox?before=${two}`)).toMatchObject({ replies: [{ number: one }] })
    expect(await json('GET', '/outbox?channel=otherchat')).toMatchObject({ replies: [{ number: two }] })
    expect(await json('GET', '/outbox?state=ambiguous')).toEqual({
      next: null,
      replies: [
        {
          number: one,
          channel: 'testchat',
          account: 'bot',
          to: { to: 'room', thread: 't', reply_to: null, more: null },
          text: 'hello back',
          part: 1,
          parts: 1,
          state: 'ambiguous',
          attempts: 1,
          created_at: '2026-01-01T00:00:00.000Z',
          next_at: null,
          ended_at: '2026-01-01T00:00:00.000Z',
          provider_id: null,
          client_id: 'client-1',
          inbox: null,
          turn_id: null,
          repeated: false,
          error: 'cut off',
        },
      ],
    })
  })

  test('shows one reply, and replays it unless it is sent', async () => {
    const { call, json, store } = await arrange()
    const [number = 0] = await store.outbox.add([reply()])
    expect(await json('GET', `/outbox/${number}`)).toMatchObject({ number, text: 'hello back', turn: null })
    expect((await call('POST', `/outbox/${number}/replay`)).status).toBe(409)
    await store.outbox.start(number)
    await store.outbox.giveUp(number, { state: 'dead', error: 'refused', atMs: AT_MS })
    expect(await json('POST', `/outbox/${number}/replay`)).toEqual({ replayed: true, number })
    await store.outbox.start(number)
    await store.outbox.sent(number, { providerId: 'p1', atMs: AT_MS })
    expect(await json('POST', `/outbox/${number}/replay`)).toEqual({
      error: `Reply ${number} has been sent: the provider has it`,
      code: 'conflict',
    })
  })
})

describe('a replay by filter', () => {
  test('runs the dead messages of a channel again', async () => {
    const { keep, post, store } = await arrange()
    const [one, other] = [await keep('m1'), await keep('m2', { channel: 'otherchat' })]
    const waiting = await keep('m3')
    for (const number of [one, other]) {
      await store.inbox.start(number, `turn-${number}`, 5)
      await store.inbox.markDead(number, { error: 'no model', atMs: AT_MS })
    }
    expect(await post('/inbox/replay', { state: ['dead'], channel: 'testchat' })).toEqual({ replayed: [one], too_old: [], more: false })
    expect(await store.inbox.counts()).toEqual({ pending: 2, running: 0, dead: 1 })
    expect(await store.inbox.get(waiting)).toMatchObject({ state: 'pending' })
  })

  test('sends replies since a time again, and wakes their workers', async () => {
    let woken = 0
    const { post, json, store } = await arrange({ wake: () => void woken++ })
    const [old = 0, dead = 0, ambiguous = 0] = await store.outbox.add([
      reply(),
      reply({ createdAtMs: AT_MS + 1000 }),
      reply({ createdAtMs: AT_MS + 2000 }),
    ])
    for (const number of [old, dead, ambiguous]) {
      await store.outbox.start(number)
      const state = number === ambiguous ? 'ambiguous' : 'dead'
      await store.outbox.giveUp(number, { state, error: 'refused', atMs: AT_MS })
    }
    expect(await json('GET', '/outbox?state=dead,ambiguous&limit=2')).toMatchObject({
      replies: [{ number: ambiguous }, { number: dead }],
      next: dead,
    })
    const since = new Date(AT_MS + 1000).toISOString()
    expect(await post('/outbox/replay', { state: ['dead', 'ambiguous'], since })).toEqual({
      replayed: [dead, ambiguous],
      too_old: [],
      more: false,
    })
    expect(woken).toBe(1)
    expect(await store.sops.audit({ limit: 9 })).toMatchObject([
      { kind: 'delivery_replayed', detail: { box: 'outbox', count: 2, numbers: [dead, ambiguous] } },
    ])
    expect(await store.outbox.counts()).toMatchObject({ queued: 2, dead: 1 })
  })

  test.each([
    ['/inbox/replay', { state: ['ambiguous'] }],
    ['/inbox/replay', { state: [] }],
    ['/inbox/replay', {}],
    ['/outbox/replay', { state: ['sent'] }],
    ['/outbox/replay', { state: ['dead'], since: 'yesterday' }],
  ])('POST %s %j is refused', async (path, body) => {
    const { post } = await arrange()
    expect(await post(path, body)).toMatchObject({ code: 'invalid_request' })
  })
})

test('counts messages and replies, except finished ones', async () => {
  const { keep, json, store } = await arrange()
  await keep('m1')
  await store.outbox.add([reply(), reply()])
  expect(await json('GET', '')).toEqual({
    states: { inbox: expect.arrayContaining(['pending', 'dead']), outbox: expect.arrayContaining(['queued', 'ambiguous']) },
    inbox: { pending: 1, running: 0, dead: 0 },
    outbox: { queued: 2, sending: 0, failed: 0, ambiguous: 0, dead: 0 },
  })
})

test.each<[method: string, path: string, status: number]>([
  ['GET', '/inbox?limit=0', 400],
  ['GET', '/inbox?limit=501', 400],
  ['GET', '/inbox?before=x', 400],
  ['GET', '/inbox?state=sent', 400],
  ['GET', '/outbox?state=done', 400],
  ['GET', '/inbox/77', 404],
  ['GET', '/inbox/first', 404],
  ['GET', '/outbox/77', 404],
  ['POST', '/inbox/77/replay', 404],
  ['POST', '/outbox/first/replay', 404],
])('%s /api/deliveries%s is %i', async (method, path, status) => {
  const { call } = await arrange()
  expect((await call(method, path)).status).toBe(status)
})

test('needs a token for every route', async () => {
  const { call } = await arrange()
  for (const path of ['', '/inbox', '/outbox', '/inbox/1', '/outbox/1']) expect((await call('GET', path, 'wrong')).status, path).toBe(401)
  for (const path of ['/inbox/1/replay', '/outbox/1/replay']) expect((await call('POST', path, 'wrong')).status, path).toBe(401)
})
