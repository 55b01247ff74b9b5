/** Requests that name an agent: only an operator may, and the agent is kept apart from the others in sessions, turns and lists. */

import { testSnapshot } from '@sluice/runtime/testing/test-snapshot'
import { agentOfSession } from '@sluice/sdk'
import { turnEnd } from '@sluice/testkit/store-rules/samples'
import { expect, test } from 'vitest'
import { testGateways } from '../testing.ts'

const gateway = testGateways()
const { registry } = testSnapshot()
const snapshot = { registries: new Map(['main', 'support'].map((name) => [name, registry])) }

async function arrange() {
  const made = gateway({ snapshot })
  const [operator, client] = [await made.pair('laptop'), await made.pair('phone', null, 'client')]
  const as =
    ({ token }: { readonly token: string }) =>
    async (method: string, path: string, { body, ...headers }: Record<string, string> = {}) => {
      const response = await made.request(path, {
        method,
        headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json', ...headers },
        ...(body !== undefined && { body }),
      })
      return { status: response.status, json: (await response.json()) as Record<string, unknown> }
    }
  return { ...made, operator, asOperator: as(operator), asClient: as(client) }
}

const body = JSON.stringify({ message: 'hello' })

test('an operator talks to the agent that X-Agent names, in sessions and turns of this agent', async () => {
  const { asOperator, operator, turns } = await arrange()
  for (const agent of ['support', 'main']) {
    const headers = { body, 'x-agent': agent, 'x-session-id': 'home' }
    expect(await asOperator('POST', '/webhook', headers)).toMatchObject({ status: 200, json: { session_id: 'home' } })
  }
  expect(turns.map(({ session }) => session)).toEqual([`agent:support/${operator.device}/home`, `${operator.device}/home`])
  expect(turns[0]?.caller).toBe(turns[1]?.caller)
  expect((await asOperator('GET', '/api/turns/turn-1')).json).toMatchObject({ agent: 'support' })
  expect((await asOperator('GET', '/api/turns/turn-2')).json).toMatchObject({ agent: 'main' })
})

test('a turn without a session has an agent, too', async () => {
  const { asOperator, turns } = await arrange()
  await asOperator('POST', '/webhook', { body, 'x-agent': 'support' })
  await asOperator('POST', '/webhook', { body })
  expect(turns.map(({ session, agent }) => [session, agent])).toEqual([
    [null, 'support'],
    [null, 'main'],
  ])
})

test('a list has the sessions of a device with every agent, and each can be read', async () => {
  const { asOperator, operator } = await arrange()
  for (const agent of ['support', 'main']) await asOperator('POST', '/webhook', { body, 'x-agent': agent, 'x-session-id': 'home' })
  const id = `agent:support/${operator.device}/home`
  const listed = (await asOperator('GET', '/api/sessions')).json.sessions as { session_id: string; agent: string }[]
  expect(listed.map(({ session_id, agent }) => [session_id, agent]).sort()).toEqual([
    [id, 'support'],
    ['home', 'main'],
  ])
  expect((await asOperator('GET', `/api/sessions/${encodeURIComponent(id)}`)).json).toMatchObject({ agent: 'support', message_count: 2 })
  expect((await asOperator('GET', '/api/sessions/home')).json).toMatchObject({ agent: 'main', message_count: 2 })
})

test('a client may not choose an agent, nor read a session of one', async () => {
  const { asClient, turns } = await arrange()
  const refused = { status: 403, json: { code: 'forbidden', error: 'Only an operator chooses an agent. Omit X-Agent.' } }
  expect(await asClient('POST', '/webhook', { body, 'x-agent': 'support' })).toMatchObject(refused)
  expect(await asClient('POST', '/webhook', { body, 'x-agent': 'none' })).toMatchObject(refused)
  expect(await asClient('POST', '/webhook', { body, 'x-agent': 'main' })).toMatchObject({ status: 200 })
  expect(turns).toHaveLength(1)
  expect((await asClient('GET', `/api/sessions/${encodeURIComponent('agent:support/x/home')}`)).status).toBe(400)
})

test('an unknown agent is refused with the known ones, before the idempotency key is claimed', async () => {
  const { asOperator } = await arrange()
  const key = { 'x-idempotency-key': 'k' }
  expect(await asOperator('POST', '/webhook', { body, ...key, 'x-agent': 'suport' })).toMatchObject({
    status: 400,
    json: { error: 'X-Agent: there is no agent "suport"; did you mean "support"? The agents are main, support. [agents.<name>] adds one' },
  })
  expect((await asOperator('POST', '/webhook', { body, ...key, 'x-agent': 'support' })).json).toMatchObject({ response: 're: hello' })
})

test('erasing a person covers the conversations and memories with every agent', async () => {
  const { asOperator, store } = await arrange()
  const owners = ['channel:x/a/u', 'agent:support/channel:x/a/u', 'agent:support/channel:x/a/other']
  for (const owner of owners) {
    const session = owner.replace('/a/', '/a/room/')
    await store.turns.finish(turnEnd(session, { sessionId: session, agent: agentOfSession(session), owner: 'channel:x', source: 'x' }))
    await store.memory.put({ owner, key: 'k', content: 'c', category: 'core', untrusted: false, atMs: 0 })
  }
  const listed = async () => (await asOperator('GET', '/api/sessions?channel=x&sender=u')).json.sessions
  expect(await listed()).toHaveLength(2)
  expect((await asOperator('DELETE', '/api/sessions?channel=x&sender=u')).json).toMatchObject({ erased: { said: 2, memories: 2 } })
  expect(await listed()).toEqual([])
  expect((await store.sessions.list({ limit: 10 })).map(({ id }) => id)).toEqual(['agent:support/channel:x/a/room/other'])
  expect((await store.memory.owners({ limit: 10 })).map(({ owner }) => owner)).toEqual(['agent:support/channel:x/a/other'])
})

test('the owner of a memory with another agent can be named', async () => {
  const { asOperator, store } = await arrange()
  await store.memory.put({ owner: 'agent:support/device:phone', key: 'k', content: 'c', category: 'core', untrusted: false, atMs: 0 })
  const listed = await asOperator('GET', `/api/memories?owner=${encodeURIComponent('agent:support/device:phone')}`)
  expect(listed).toMatchObject({ status: 200, json: { memories: [{ owner: 'agent:support/device:phone', key: 'k' }] } })
})

test('the status lists the agents', async () => {
  const { asOperator } = await arrange()
  expect((await asOperator('GET', '/api/status')).json).toMatchObject({ agents: ['main', 'support'] })
})
