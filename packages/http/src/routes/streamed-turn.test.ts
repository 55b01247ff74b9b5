import { AppError, senderKey } from '@sluice/sdk'
import { failedTurn, turnEnd } from '@sluice/testkit/store-rules/samples'
import { expect, test } from 'vitest'
import { type TestGatewayOptions, type TestRequest, testGateways } from '../testing.ts'

const gateway = testGateways()

async function served(options: TestGatewayOptions = {}) {
  const made = gateway(options)
  const { token, device } = await made.pair('phone', null, 'client')
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
  const turn = (body: object) => made.request('/api/turns', { method: 'POST', headers, body: JSON.stringify(body) })
  return { made, device, turn }
}

const framesOf = async (response: Response) =>
  (await response.text())
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line))

test('streams the parts of a turn in a session of the caller, and ends with the answer', async () => {
  const { made, device, turn } = await served({
    reply({ listen, text }) {
      listen?.({ type: 'text', delta: 're: ' })
      return `re: ${text}`
    },
  })
  const response = await turn({ message: 'hello', session_id: 's' })
  expect(response.headers.get('content-type')).toBe('application/x-ndjson')
  expect(await framesOf(response)).toMatchObject([
    { type: 'chunk', content: 're: ' },
    { type: 'done', full_response: 're: hello', model: 'echo', input_tokens: 1 },
  ])
  expect(made.turns).toMatchObject([{ source: 'api', owner: device, caller: `device:${device}`, session: `${device}/s` }])
})

test('ends with the error of a failed turn, and says nothing of a bug', async () => {
  const { made, turn } = await served({
    reply({ text }) {
      throw text === 'bug' ? new Error('secret detail') : new AppError('upstream', 'The provider answered 500')
    },
  })
  const failed = { type: 'error', code: 'PROVIDER_ERROR', error_code: 'upstream', message: 'The provider answered 500' }
  expect(await framesOf(await turn({ message: 'hello' }))).toEqual([failed])
  expect(await framesOf(await turn({ message: 'bug' }))).toMatchObject([{ type: 'error', error_code: 'internal' }])
  expect(made.logs).toContainEqual(expect.objectContaining({ level: 'error', message: 'turn failed' }))
})

test('with stays, the id comes first, and the turn goes on when the caller goes away', async () => {
  const answer = Promise.withResolvers<string>()
  const signals: (AbortSignal | undefined)[] = []
  const { turn } = await served({
    reply: ({ signal, onId }) => {
      signals.push(signal)
      onId?.('turn-7')
      return answer.promise
    },
  })
  const response = await turn({ message: 'hello', stays: true })
  const reader = response.body?.getReader()
  const [first] = Buffer.from((await reader?.read())?.value ?? [])
    .toString()
    .split('\n')
  expect(JSON.parse(first ?? '')).toEqual({ type: 'turn_start', turn_id: 'turn-7' })
  await reader?.cancel()
  expect(signals).toEqual([undefined])
  answer.resolve('done')
})

test('a caller that goes away aborts the turn', async () => {
  const aborted = Promise.withResolvers<boolean>()
  const { turn } = await served({
    reply: ({ signal, listen }) => {
      signal?.addEventListener('abort', () => aborted.resolve(true))
      listen?.({ type: 'text', delta: 'one' })
      return aborted.promise.then(() => 'too late')
    },
  })
  const response = await turn({ message: 'hello' })
  const reader = response.body?.getReader()
  expect(Buffer.from((await reader?.read())?.value ?? []).toString()).toContain('one')
  await reader?.cancel()
  expect(await aborted.promise).toBe(true)
})

test('asks the caller to approve a tool call, and takes the answer at /api/approvals', async () => {
  const { made, turn } = await served({
    async reply({ approve, signal = new AbortController().signal }) {
      const request = { tool: 'shell', summary: 'rm', turn: 'turn-1', callId: 'c1', callHash: 'h', source: 'api' }
      return (await approve?.(request as never, signal)) ? 'allowed' : 'refused'
    },
  })
  await made.runtime.approvals.start()
  const response = await turn({ message: 'hello', ask: true })
  const reader = response.body?.getReader()
  const [asked] = Buffer.from((await reader?.read())?.value ?? [])
    .toString()
    .split('\n')
  const { run_id, step_id } = JSON.parse(asked ?? '')
  expect(
    await made.runtime.approvals.decide(
      { runId: run_id, stepId: step_id },
      { state: 'approved', by: 'cli:alice', who: { standing: 'listed', isAsked: true } },
    ),
  ).toMatchObject({
    won: true,
  })
  const last = Buffer.from((await reader?.read())?.value ?? []).toString()
  expect(JSON.parse(last)).toMatchObject({ type: 'done', full_response: 'allowed' })
})

test('answers 429 when too many turns of the client wait, or too many of its answers are unread', async () => {
  const { made, device, turn } = await served({ shares: { turnsWaiting: 1, streams: 1 } })
  const client = { client: `device:${device}`, standing: 'listed' } as const
  const refused = { code: 'share_used', retry_after: 5 }
  const held = made.runtime.shares.count(client, 'turnsWaiting')
  const waits = await turn({ message: 'hello' })
  expect([waits.status, await waits.json()]).toEqual([429, expect.objectContaining(refused)])
  held.release()
  const unread = await turn({ message: 'hello' })
  await expect.poll(() => made.runtime.shares.heldBy(client, 'streams')).toBe(1)
  expect((await turn({ message: 'hello' })).status).toBe(429)
  await unread.text()
  expect((await turn({ message: 'hello' })).status).toBe(200)
})

test('streams of linked accounts count together', async () => {
  const { made, device, turn } = await served({ shares: { streams: 1 } })
  const ann = senderKey('x', { account: 'bot', sender: 'ann' })
  const { code } = await made.runtime.people.newCode({ account: ann, by: 'x:ann' })
  await made.runtime.people.redeem({ account: `device:${device}`, by: 'test' }, code)
  const held = made.runtime.shares.count({ client: ann, standing: 'listed' }, 'streams')
  expect((await turn({ message: 'hello' })).status).toBe(429)
  held.release()
  const unread = await turn({ message: 'hello' })
  await expect.poll(() => made.runtime.shares.heldBy({ client: ann }, 'streams')).toBe(1)
  // The link may end while a stream is open: its share is given back.
  await made.runtime.people.unlink({ account: ann, by: 'test' })
  await unread.text()
  expect(made.runtime.shares.heldBy({ client: ann }, 'streams')).toBe(0)
})

const later = { prefer: 'respond-async' }

async function stored() {
  const made = gateway()
  const { token, device } = await made.pair('phone', null, 'client')
  const other = await made.pair('other', null, 'client')
  const as = (bearer: string, path: string, init: TestRequest = {}) =>
    made.request(path, { ...init, headers: { authorization: `Bearer ${bearer}`, 'content-type': 'application/json', ...init.headers } })
  const post = async (body: object, headers: Record<string, string> = {}) => {
    const answer = await as(token, '/api/turns', { method: 'POST', headers: { ...later, ...headers }, body: JSON.stringify(body) })
    return { status: answer.status, json: (await answer.json()) as { turn_id: string; status_url: string; code?: string } }
  }
  return { made, device, other, as, token, post }
}

test('a turn that is stored at once is answered with its address, and a repeat of its key with the same turn', async () => {
  const { made, device, post } = await stored()
  const key = { 'x-idempotency-key': 'k1' }
  const first = await post({ message: 'hello', session_id: 's', ask: true }, key)
  expect(first).toEqual({ status: 202, json: { turn_id: 'turn-1', status_url: '/api/turns/turn-1' } })
  expect(await post({ message: 'hello', session_id: 's' }, key)).toEqual(first)
  expect(made.turns).toMatchObject([{ source: 'api', session: `${device}/s`, owner: device, asksOwner: true, text: 'hello' }])
  expect((await post({ message: 'hello', session_id: 's' }, { 'x-idempotency-key': 'k2' })).json.turn_id).toBe('turn-2')
  expect((await post({ message: 'hello' }, { 'x-idempotency-key': 'not one' })).status).toBe(400)
})

test('a stored turn is followed by its device to its end, also by a caller that comes later', async () => {
  const { made, as, token, other, post, device } = await stored()
  const ended = Promise.withResolvers<void>()
  Object.assign(made.runtime.agent, { ended: () => ended.promise })
  const { turn_id } = (await post({ message: 'hello', session_id: 's' })).json
  const [request] = made.turns
  request?.listen?.({ type: 'text', delta: 'hel' })
  request?.listen?.({ type: 'text', delta: 'lo' })
  const first = as(token, `/api/turns/${turn_id}/stream`)
  expect((await as(other.token, `/api/turns/${turn_id}/stream`)).status).toBe(404)
  expect((await as(token, '/api/turns/unknown/stream')).status).toBe(404)
  expect(await (await as(token, `/api/turns/${turn_id}`)).json()).toMatchObject({ status: 'queued', input: 'hello' })
  const { body } = await first
  await made.runtime.store.turns.finish(turnEnd(turn_id, { owner: device, sessionId: `${device}/s`, response: 'hello' }))
  ended.resolve()
  const answer = { type: 'done', full_response: 'hello', turn_id }
  expect(await framesOf(new Response(body))).toMatchObject([{ type: 'chunk', content: 'hello' }, answer])
  expect(await framesOf(await as(token, `/api/turns/${turn_id}/stream`))).toMatchObject([answer])
})

test('the end of a turn that failed or was aborted is its last frame', async () => {
  const { made, as, token, device } = await stored()
  const { turns } = made.runtime.store
  await turns.finish(failedTurn('failed', { owner: device }))
  await turns.finish(failedTurn('stopped', { owner: device, status: 'aborted' }))
  expect(await framesOf(await as(token, '/api/turns/failed/stream'))).toEqual([
    { type: 'error', message: 'no answer', code: 'AGENT_ERROR', error_code: 'upstream' },
  ])
  expect(await framesOf(await as(token, '/api/turns/stopped/stream'))).toEqual([{ type: 'aborted', turn_id: 'stopped' }])
})
