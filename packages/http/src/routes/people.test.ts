/** `/api/people`: codes, links, what clients and operators see, and erasing across a link. */
import { type Channel, chatSessionKey, senderKey } from '@sluice/sdk'
import { expect, test, vi } from 'vitest'
import { testGateways } from '../testing.ts'

const gateway = testGateways()
const ANN = { channel: 'x', account: 'bot', sender: 'ann' }
const ANN_KEY = senderKey('x', ANN)

async function arrange() {
  const channel = { name: 'x', allow: ['ann', 'bob'], limits: { text: 2000, unit: 'utf16' } } as unknown as Channel
  const made = gateway({ snapshot: { channels: [channel] } })
  const tokens = {
    operator: await made.pair('operator'),
    client: await made.pair('c', null, 'client'),
    other: await made.pair('o', null, 'client'),
  }
  const call = async (who: keyof typeof tokens, method: string, path: string, body?: object) => {
    const headers = { authorization: `Bearer ${tokens[who].token}`, 'content-type': 'application/json' }
    const answer = await made.request(path, { method, headers, ...(body && { body: JSON.stringify(body) }) })
    return { status: answer.status, json: (await answer.json()) as Record<string, unknown> }
  }
  const device = (who: keyof typeof tokens) => `device:${tokens[who].device}`
  /** Links a device with a sender who has a conversation. */
  const link = async (who: keyof typeof tokens) => {
    const { code } = await made.runtime.people.newCode({ account: ANN_KEY, by: 'x:ann', to: { to: 'ann' } })
    return call(who, 'POST', '/api/people/links', { code })
  }
  return { ...made, call, device, link }
}

const at = (account: string): string => `/api/people/${encodeURIComponent(account)}`

test('a code of a device links it with a sender, and both directions are shown', async () => {
  const { call, device, runtime, store } = await arrange()
  const { json } = await call('client', 'POST', '/api/people/codes')
  expect(json).toEqual({ code: expect.stringMatching(/^[A-Z2-9]{5}-[A-Z2-9]{5}$/), expires_at: expect.any(String) })
  expect(await runtime.people.redeem({ account: ANN_KEY, by: 'x:ann' }, String(json.code))).toMatchObject({ outcome: 'linked' })
  const person = {
    owner: device('client'),
    accounts: [
      { account: device('client'), shown: 'a paired device', name: null, channel: null, confirmed: [] },
      { account: ANN_KEY, shown: 'ann on x', name: 'ann', channel: 'x', confirmed: [] },
    ],
  }
  expect((await call('operator', 'GET', '/api/people')).json).toMatchObject({ people: [person] })
  expect((await call('client', 'GET', at(device('client')))).json).toMatchObject(person)
  expect((await call('client', 'GET', at(ANN_KEY))).json).toMatchObject(person)
  expect((await call('operator', 'GET', at(ANN_KEY))).json).toMatchObject(person)
  // The memories of the person are those of the device.
  await store.memory.put({ owner: device('client'), key: 'k', content: 'x', category: 'core', untrusted: false, atMs: 0 })
  expect((await call('client', 'GET', '/api/memories')).json).toMatchObject({ memories: [{ key: 'k' }] })
})

test('a code of a sender that a device types tells the sender, and the device reads the memories of the person', async () => {
  const { call, link, store, device } = await arrange()
  expect(await link('client')).toMatchObject({ status: 200, json: { owner: ANN_KEY } })
  expect(await store.outbox.list({ limit: 9 })).toMatchObject([
    { channel: 'x', text: expect.stringContaining('linked with a paired device') },
  ])
  await store.memory.put({ owner: ANN_KEY, key: 'k', content: 'x', category: 'core', untrusted: false, atMs: 0 })
  expect((await call('client', 'GET', '/api/memories/k')).status).toBe(200)
  expect((await call('client', 'DELETE', at(device('client')))).json).toEqual({ unlinked: device('client'), from: [ANN_KEY] })
  expect((await call('client', 'GET', '/api/memories/k')).status).toBe(404)
})

test('a link that a device makes is told to all other accounts of the person', async () => {
  const { call, link, runtime, store } = await arrange()
  await link('client')
  const code = (await runtime.people.newCode({ account: ANN_KEY, by: 'x:ann', to: { to: 'ann' } })).code
  const bob = senderKey('x', { account: 'bot', sender: 'bob' })
  await runtime.people.redeem({ account: bob, to: { to: 'bob' }, by: 'x:bob', command: 'inbox:1' }, code)
  const before = (await store.outbox.list({ limit: 9 })).length
  const ofDevice = String((await call('client', 'POST', '/api/people/codes')).json.code)
  expect(await call('other', 'POST', '/api/people/links', { code: ofDevice })).toMatchObject({ status: 200 })
  const told = (await store.outbox.list({ limit: 9 })).slice(0, -before)
  expect(told.map(({ to, text }) => [to.to, text?.includes('linked with a paired device:')]).toSorted()).toEqual([
    ['ann', true],
    ['bob', true],
  ])
})

test('the memories of a device follow what another node has separated', async () => {
  const { call, link, store, device, runtime } = await arrange()
  await link('client')
  await store.memory.put({ owner: ANN_KEY, key: 'k', content: 'x', category: 'core', untrusted: false, atMs: 0 })
  const refresh = vi
    .spyOn(runtime.people, 'refresh')
    .mockImplementation(async () => void (await runtime.people.unlink({ account: device('client'), by: 'x' })))
  expect((await call('client', 'GET', '/api/memories/k')).status).toBe(404)
  expect(refresh).toHaveBeenCalledOnce()
})

test('a client neither sees nor separates the accounts of others, and a wrong code is refused', async () => {
  const { call, link, device } = await arrange()
  await link('client')
  for (const method of ['GET', 'DELETE'])
    for (const account of [ANN_KEY, device('client')]) expect((await call('other', method, at(account))).status).toBe(404)
  expect((await call('other', 'POST', '/api/people/links', { code: 'AAAAA-AAAAA' })).status).toBe(400)
  expect((await call('operator', 'DELETE', at(ANN_KEY))).status).toBe(200)
  expect((await call('operator', 'GET', '/api/people')).json).toEqual({ people: [] })
})

test.each(['operator', 'client'] as const)('an account that a device of the %s separates is told, besides the others', async (who) => {
  const { call, link, store, runtime } = await arrange()
  await link('client')
  const { code } = await runtime.people.newCode({ account: ANN_KEY, by: 'x:ann', to: { to: 'ann' } })
  const bob = { account: senderKey('x', { account: 'bot', sender: 'bob' }), by: 'x:bob', to: { to: 'bob' } }
  await runtime.people.redeem({ ...bob, command: 'inbox:1' }, code)
  const before = (await store.outbox.list({ limit: 9 })).length
  expect((await call(who, 'DELETE', at(ANN_KEY))).status).toBe(200)
  const told = (await store.outbox.list({ limit: 9 })).slice(0, -before)
  expect(told.map(({ to, text }) => [to.to, text]).toSorted()).toEqual([
    ['ann', 'This account is no longer linked with a paired device, bob on x.'],
    ['bob', 'This account is no longer linked with ann on x.'],
  ])
})

test('a link gives a device no role', async () => {
  const { call, link } = await arrange()
  await link('client')
  expect((await call('client', 'GET', '/api/people')).status).toBe(403)
})

test('erasing a person erases what belongs to all linked accounts, says so, and ends the link', async () => {
  const { call, link, store, device, runtime } = await arrange()
  await link('client')
  await runtime.people.redeem(
    { account: senderKey('x', { account: 'bot', sender: 'bob' }), by: 'x:bob' },
    (await call('client', 'POST', '/api/people/codes')).json.code as string,
  )
  const say = (sender: string, id: string) =>
    store.turns.finish({
      ...{
        id: `01890000-0000-7000-8000-${id.padStart(12, '0')}`,
        sessionId: chatSessionKey({ channel: 'x', account: 'bot', conversation: sender, sender }),
      },
      ...{ agent: 'main', source: 'x', status: 'done', input: 'hi', response: 'ho', model: 'm', error: null, attempts: 1 },
      ...{ inputTokens: 0, outputTokens: 0, costUsd: 0, createdAtMs: 1, endedAtMs: 2 },
      messages: [{ role: 'user', content: [{ type: 'text', text: 'hi' }] }],
    })
  await say('ann', '1')
  await say('bob', '2')
  for (const owner of [ANN_KEY, device('client'), device('other')])
    await store.memory.put({ owner, key: 'k', content: 'x', category: 'core', untrusted: false, atMs: 0 })
  const { json } = await call('operator', 'DELETE', '/api/sessions?channel=x&sender=bob')
  expect(json).toMatchObject({ deleted: true, erased: { said: 2, memories: 2 }, linked: [ANN_KEY, device('client')] })
  expect(await store.sessions.list({ limit: 9 })).toEqual([])
  expect((await store.memory.list({ limit: 9 })).map(({ owner }) => owner)).toEqual([device('other')])
  expect((await call('operator', 'GET', '/api/people')).json).toEqual({ people: [] })
  expect(await store.keyValue('people').get('links')).toMatchObject({ people: [], codes: [], made: [], changes: [] })
})
