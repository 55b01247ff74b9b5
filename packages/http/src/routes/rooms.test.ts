/** `/api/rooms`: rules, what is in force, erasing, and transcripts that are played against a rule. */
import type { Snapshot } from '@sluice/runtime'
import { agentKey, type Channel, chatSessionKey, ROOMS, roomKey } from '@sluice/sdk'
import * as v from 'valibot'
import { expect, test } from 'vitest'
import { testGateways } from '../testing.ts'

const gateway = testGateways()
const ROOM = { channel: 'x', account: 'bot', conversation: 'room/1' }
const PATH = `/api/rooms/${encodeURIComponent('x/bot/room%2F1')}`
const OWNER = 'room:x/bot/room%2F1'

async function arrange(more: Partial<Snapshot> = {}) {
  const channel = { name: 'x', allow: ['ann', 'bob'] } as unknown as Channel
  /** The conversations whose commands were ended. */
  const ended: string[] = []
  const services = { endCommands: async (session: string) => void ended.push(session) }
  const service = ((name: string) => services[name as 'endCommands']) as Snapshot['service']
  const registries = new Map(['main', 'help'].map((agent) => [agent, {}])) as unknown as Snapshot['registries']
  const made = gateway({ snapshot: { channels: [channel], service, registries, ...more } })
  const { token } = await made.pair('operator')
  const call = async (method: string, path: string, body?: object) => {
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
    const answer = await made.request(path, { method, headers, ...(body && { body: JSON.stringify(body) }) })
    return { status: answer.status, json: (await answer.json()) as Record<string, unknown> }
  }
  const say = (sessionId: string, id: string) =>
    made.store.turns.finish({
      id: `01890000-0000-7000-8000-${id.padStart(12, '0')}`,
      sessionId,
      agent: 'main',
      source: 'x',
      status: 'done',
      input: 'hi',
      response: 'ho',
      model: 'm',
      error: null,
      inputTokens: 0,
      outputTokens: 0,
      costUsd: 0,
      attempts: 1,
      createdAtMs: 1,
      endedAtMs: 2,
      messages: [{ role: 'user', content: [{ type: 'text', text: 'hi' }] }],
    })
  return { ...made, call, say, ended }
}

test('a rule is set as a whole, shown with what is in force, and removed', async () => {
  const { call, store } = await arrange()
  expect((await call('GET', PATH)).json).toMatchObject({ rule: {}, session: 'shared', respond: 'always', overhears: true, agent: 'main' })
  const rule = { session: 'person', respond: 'judge', people: ['ann'], turns_per_hour: 3 }
  expect((await call('PUT', PATH, rule)).json).toMatchObject({ ...ROOM, rule, session: 'person', respond: 'judge', overhears: false })
  expect((await call('GET', '/api/rooms')).json).toMatchObject({ rooms: [{ room: 'x/bot/room%2F1', rule, last_activity: null }] })
  expect((await call('PUT', PATH, {})).json).toMatchObject({ rule: {} })
  expect(await store.keyValue(ROOMS).list('', 9)).toEqual([])
})

test('a change keeps the parts of a rule that this release cannot read, unless it names them', async () => {
  const { call, store } = await arrange()
  const stored = { people: { allow: ['ann'] }, respond: 'mention', tools: ['recall'], mood: 'good' }
  await store.keyValue(ROOMS).set(roomKey(ROOM), stored)
  const rule = { respond: 'mention', tools: ['recall'] }
  expect((await call('GET', PATH)).json).toMatchObject({ rule, unreadable: ['people', 'mood'], respond: 'never' })
  for (const [path, body] of [
    [PATH, { ...rule, language: 'de' }],
    [PATH, {}],
    [`${PATH}?give_up=people`, rule],
  ] as const) {
    expect(await call('PUT', path, body)).toMatchObject({ status: 409, json: { error: expect.stringContaining('mood') } })
    expect(await store.keyValue(ROOMS).get(roomKey(ROOM))).toEqual(stored)
  }
  const given = { ...rule, people: ['bob'] }
  expect((await call('PUT', `${PATH}?give_up=mood`, given)).json).toMatchObject({ rule: given, unreadable: [], respond: 'mention' })
})

test('the rule of a room whose channel is not configured any more can be removed, and no other one be set', async () => {
  const { call, store } = await arrange({ channels: [] })
  await store.keyValue(ROOMS).set(roomKey(ROOM), { session: 'person' })
  expect(await call('PUT', PATH, { session: 'shared' })).toMatchObject({ status: 400, json: { error: 'There is no channel "x".' } })
  expect(await call('PUT', PATH, {})).toMatchObject({ status: 200, json: { rule: {} } })
  expect(await store.keyValue(ROOMS).list('', 9)).toEqual([])
})

test('a rule is set for a room of a channel that is configured and has failed', async () => {
  const section = { path: 'channels_config.x', schema: v.object({}) }
  const instance = { feature: { section }, state: () => 'failed', reason: () => 'no token', parts: {} }
  const { call } = await arrange({ channels: [], instances: [instance] as never })
  expect(await call('PUT', PATH, { respond: 'never' })).toMatchObject({ status: 200, json: { rule: { respond: 'never' } } })
})

test('a room of any agent is listed and shown with its last activity', async () => {
  const { call, say } = await arrange()
  await say(agentKey('help', chatSessionKey(ROOM)), '1')
  const last_activity = '1970-01-01T00:00:00.002Z'
  expect((await call('GET', '/api/rooms')).json).toMatchObject({ rooms: [{ room: 'x/bot/room%2F1', last_activity }] })
  expect((await call('GET', PATH)).json).toMatchObject({ last_activity })
  expect((await call('PUT', PATH, { respond: 'judge' })).json).toMatchObject({ last_activity })
})

test.each([
  ['an unknown channel', '/api/rooms/y%2Fbot%2Froom', { respond: 'judge' }],
  ['an unknown member', PATH, { mood: 'good' }],
  ['an unknown agent', PATH, { agent: 'nobody' }],
  ['no id of a room', '/api/rooms/room', { respond: 'judge' }],
])('%s is refused', async (_, path, rule) => {
  const { call } = await arrange()
  expect((await call('PUT', path, rule)).status).toBe(400)
})

test.each(['main', 'help'])(
  'a new conversation with agent %s begins, and the commands of the old one end, when other people share one than before, and only then',
  async (agent) => {
    const { call, say, store, ended } = await arrange()
    const [shared, own] = [agentKey(agent, chatSessionKey(ROOM)), agentKey(agent, chatSessionKey({ ...ROOM, sender: 'ann' }))]
    await say(shared, '1')
    await say(own, '2')
    const read = async () =>
      (await Promise.all([shared, own].map((id) => store.sessions.conversation(id, 9)))).map(({ messages }) => messages.length)
    await call('PUT', PATH, { respond: 'always' })
    expect(await read()).toEqual([1, 1])
    expect(ended).toEqual([])
    await call('PUT', PATH, { session: 'person' })
    expect(await read()).toEqual([1, 0])
    expect(ended).toEqual([own])
    await call('PUT', PATH, { session: 'shared' })
    expect(await read()).toEqual([0, 0])
    expect(ended).toEqual([own, shared])
    expect(await store.sessions.history(shared, 9)).toHaveLength(1)
  },
)

test('erasing a room takes its rule, shared conversations, threads, memories and overheard messages, and nothing of persons or other rooms', async () => {
  const { call, say, store, ended } = await arrange()
  const shared = chatSessionKey(ROOM)
  const kept = [chatSessionKey({ ...ROOM, sender: 'ann' }), chatSessionKey({ ...ROOM, conversation: 'room' })]
  const others = [chatSessionKey({ ...ROOM, thread: 't' }), agentKey('help', shared)]
  for (const [index, id] of [shared, ...others, ...kept].entries()) await say(id, String(index + 1))
  for (const owner of [OWNER, 'channel:x/bot/ann'])
    await store.memory.put({ owner, key: 'k', content: 'c', category: 'core', untrusted: false, atMs: 0 })
  await store.keyValue('overheard').set(`session:${shared}\0lines`, [])
  await call('PUT', PATH, { respond: 'always' })
  expect(await call('DELETE', PATH)).toMatchObject({ status: 200, json: { deleted: true, erased: { said: 3, memories: 1 } } })
  expect(ended.toSorted()).toEqual([shared, ...others].toSorted())
  expect((await store.sessions.list({ limit: 9 })).map(({ id }) => id).toSorted()).toEqual(kept.toSorted())
  expect((await store.memory.list({ limit: 9 })).map(({ owner }) => owner)).toEqual(['channel:x/bot/ann'])
  expect([await store.keyValue(ROOMS).list('', 9), await store.keyValue('overheard').list('', 9)]).toEqual([[], []])
  expect((await store.sops.audit({ limit: 9 })).map(({ kind }) => kind)).toContain('room_erased')
  expect((await call('DELETE', PATH)).status).toBe(404)
})

test('erasing a room finds what was overheard, commands and changes where nothing else is kept', async () => {
  const { call, store } = await arrange()
  const shared = chatSessionKey(ROOM)
  await store.keyValue('overheard').set(`session:${agentKey('help', chatSessionKey({ ...ROOM, thread: 't' }))}\0lines`, [])
  expect(await call('DELETE', PATH)).toMatchObject({ status: 200, json: { erased: { said: 0, messages: 0 } } })
  expect(await store.keyValue('overheard').list('', 9)).toEqual([])
  for (const kind of ['command', 'change'] as const) {
    const message = { id: kind, account: ROOM.account, sender: 'ann', to: { to: ROOM.conversation }, text: 'words' }
    const kept = { message, kind, session: `${kind}:${shared}` }
    await store.inbox.keep({ channel: 'x', verdict: 'test', raw: null, receivedAtMs: 0, messages: [kept] })
    // What a person wrote in a shared room belongs to the room.
    expect((await call('DELETE', '/api/sessions?channel=x&sender=ann')).status).toBe(404)
    expect(await call('DELETE', PATH)).toMatchObject({ status: 200, json: { erased: { messages: 1 } } })
  }
  expect((await call('DELETE', PATH)).status).toBe(404)
})

test('erasing a person takes the conversations with all agents, and leaves what the person wrote in shared rooms', async () => {
  const { call, say, store, ended } = await arrange()
  const own = chatSessionKey({ ...ROOM, sender: 'ann' })
  await say(chatSessionKey(ROOM), '1')
  await say(own, '2')
  await say(agentKey('help', own), '3')
  expect((await call('DELETE', '/api/sessions?channel=x&sender=ann')).status).toBe(200)
  expect((await store.sessions.list({ limit: 9 })).map(({ id }) => id)).toEqual([chatSessionKey(ROOM)])
  expect(ended.toSorted()).toEqual([own, agentKey('help', own)].toSorted())
})

test('a transcript is played against the rule of the room, or against another one, and changes nothing', async () => {
  const { call, store } = await arrange()
  const messages = [
    { sender: 'bob', text: 'lunch?' },
    { sender: 'ann', text: 'bot, book it', addressed: 'mention' },
    { sender: 'eve', text: 'hi', addressed: 'mention' },
    { sender: 'ann', text: '/stop', addressed: 'command' },
  ]
  const outcomes = async (rule?: object) => {
    const { json } = await call('POST', `${PATH}/try`, { messages, ...(rule && { rule }) })
    return (json.messages as { outcome: string; overheard: number }[]).map(({ outcome, overheard }) => `${outcome} ${overheard}`)
  }
  expect(await outcomes()).toEqual(['turn 0', 'turn 0', 'denied 0', 'command 0'])
  expect(await outcomes({ respond: 'mention' })).toEqual(['overheard 0', 'turn 1', 'denied 0', 'command 0'])
  expect(await outcomes({ respond: 'judge' })).toEqual(['judge 0', 'turn 0', 'denied 0', 'command 0'])
  expect(await outcomes({ session: 'person', people: ['bob'] })).toEqual(['turn 0', 'ignored 0', 'denied 0', 'ignored 0'])
  expect(await store.keyValue(ROOMS).list('', 9)).toEqual([])
})

test('the transcript of a whole day of a busy room is played', async () => {
  const { call } = await arrange()
  const messages = Array.from({ length: 2000 }, (_, at) => ({
    sender: at % 2 === 0 ? 'ann' : 'bob',
    text: `message ${at}: ${'words '.repeat(40)}`,
    addressed: at % 33 === 0 ? 'mention' : 'overheard',
  }))
  const { status, json } = await call('POST', `${PATH}/try`, { messages, rule: { respond: 'mention' } })
  expect(status).toBe(200)
  const turns = (json.messages as { outcome: string; overheard: number }[]).filter(({ outcome }) => outcome === 'turn')
  expect(turns.map(({ overheard }) => overheard)).toEqual([0, ...Array.from({ length: 60 }, () => 32)])
})
