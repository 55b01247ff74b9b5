/**
 * Serves a data directory of release 0.1.0, which was killed while it worked: no data is lost, and interrupted work is resumed
 * once. See docs/contract.md#storage.
 */
import { appendFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type ChatappFake, startChatappFake } from '@sluice/channel-chatapp/testing'
import { type Daemon, startDaemon } from '@sluice/daemon'
import { withoutFrames } from '@sluice/sdk'
import { type TestClock, testClock } from '@sluice/testkit/clock'
import type { ModelStep } from '@sluice/testkit/model-script'
import { type ModelServer, startModelServer } from '@sluice/testkit/model-server'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { always } from '../../../profiles/always.ts'
import { chatappRequest } from '../daemons/chatapp-requests.ts'
import { sendRequest } from '../daemons/send-request.ts'
import { copyFirstRelease, type FirstRelease, type FixtureQuestion } from '../first-release.ts'

let model: ModelServer
let platform: ChatappFake
let release: FirstRelease
let clock: TestClock
let daemon: Daemon

/** The model's answers to the requests that the first release left open. */
function answer(text: string, results: number): ModelStep {
  const [, run] = /procedure "\w+" \(run ([\w-]+)\)/.exec(text) ?? []
  if (run && results === 0) return { toolCalls: [{ name: 'sop_advance', input: { run_id: run, status: 'completed', output: 'written' } }] }
  return { text: `Answered: ${text.slice(0, 60)}` }
}

beforeAll(async () => {
  model = await startModelServer({ answer: ({ lastUserText, body }) => answer(withoutFrames(lastUserText), resultsIn(body)) })
  platform = await startChatappFake()
  release = copyFirstRelease({ modelUrl: model.url, platformUrl: platform.url })
  clock = testClock(release.facts.killedAtMs + 60_000)
  const { dataDir, configFile } = release
  // The working sandboxes differ between machines, so none is used.
  appendFileSync(configFile, '\n[security.sandbox]\nenabled = false\n')
  daemon = await startDaemon({
    features: always,
    dataDir,
    configFile,
    env: {},
    profile: 'test',
    version: '0.0.0',
    clock,
    host: '127.0.0.1',
    port: 0,
  })
})
afterAll(async () => {
  await daemon.stop()
  await Promise.all([model.close(), platform.close()])
  release.dispose()
})

/** The number of tool results after the last user message. */
function resultsIn(body: unknown): number {
  const { messages } = body as { readonly messages: readonly { readonly role: string }[] }
  return messages.slice(messages.findLastIndex(({ role }) => role === 'user')).filter(({ role }) => role === 'tool').length
}

async function until<T>(find: () => Promise<T | undefined | false>): Promise<T> {
  const endMs = performance.now() + 15_000
  for (;;) {
    const found = await find()
    if (found !== undefined && found !== false) return found
    if (performance.now() > endMs) throw new Error(`The condition did not hold within 15 s: ${find}`)
    await clock.advance(20)
    await sleep(2)
  }
}

async function call(
  method: string,
  path: string,
  body?: object,
  { token = release.facts.tokens.laptop, ...headers }: Record<string, string> = {},
) {
  const response = await fetch(`${daemon.url}${path}`, {
    method,
    headers: { 'content-type': 'application/json', authorization: `Bearer ${token}`, ...headers },
    ...(body && { body: JSON.stringify(body) }),
  })
  return { status: response.status, turnId: response.headers.get('x-turn-id'), body: JSON.parse(await response.text()) }
}

/** The number of requests to the model whose user message ends with this text. */
const askedFor = (text: string): number => model.requests.filter(({ lastUserText }) => withoutFrames(lastUserText).endsWith(text)).length

const inboxRow = async (id: string) => {
  const { inbox } = daemon.runtime.store
  const row = (await inbox.list({ limit: 100 })).find(({ messageId }) => messageId === id)
  return row && inbox.get(row.number)
}

const decide = ([run, step]: FixtureQuestion) => call('POST', `/api/approvals/${run}/${step}`, { approved: true })

test('the database is intact after the upgrade', async () => {
  expect(await daemon.runtime.store.check()).toEqual([])
  expect(await daemon.runtime.store.sops.verify()).toMatchObject({ broken: null })
})

test('paired devices authenticate, and a revoked one does not', async () => {
  const { tokens } = release.facts
  expect((await call('GET', '/api/sessions')).status).toBe(200)
  expect((await call('GET', '/api/sessions', undefined, { token: tokens.tablet })).status).toBe(200)
  expect((await call('GET', '/api/sessions', undefined, { token: tokens.revoked })).status).toBe(401)
})

test('every session and turn belongs to the main agent, under the id that it had', async () => {
  const { sessions } = (await call('GET', '/api/sessions?all=true')).body as { sessions: { session_id: string; agent: string }[] }
  expect(sessions.length).toBeGreaterThan(1)
  expect(new Set(sessions.map(({ agent }) => agent))).toEqual(new Set(['main']))
  expect(sessions.map(({ session_id }) => session_id)).toContain('diary')
  expect(sessions.filter(({ session_id }) => session_id.startsWith('agent:'))).toEqual([])
  const { body: turn } = await call('POST', '/webhook', { message: 'hello again' }, { 'x-session-id': 'diary' })
  expect((await call('GET', `/api/turns/${turn.turn_id}`)).body).toMatchObject({ agent: 'main', session_id: 'diary' })
})

test('a conversation continues with its history', async () => {
  const { body } = await call('GET', '/api/sessions/diary/messages')
  expect(JSON.stringify(body)).toContain('My name is Ada.')
  expect((await call('GET', '/api/sessions/diary')).body).toMatchObject({ name: 'My diary' })
  const turn = await call('POST', '/webhook', { message: 'who am I?' }, { 'x-session-id': 'diary' })
  expect(turn.status).toBe(200)
  const request = model.requests.find(({ lastUserText }) => withoutFrames(lastUserText) === 'who am I?')
  expect(JSON.stringify(request?.body)).toContain('My name is Ada.')
})

test('an interrupted turn is resumed once, after its finished tool call', async () => {
  const { turns, memories } = release.facts
  const turn = await until(async () => {
    const { body } = await call('GET', `/api/turns/${turns.interrupted}`)
    return body.status === 'done' && body
  })
  expect(turn.response).toContain('Answered: remember drink')
  expect(askedFor('then slow')).toBe(1)
  const [request] = model.requests.filter(({ lastUserText }) => withoutFrames(lastUserText).endsWith('then slow'))
  expect(resultsIn(request?.body)).toBe(1)
  expect(JSON.stringify(request?.body)).toContain(memories.drink)
})

test('used idempotency keys stay used, also after an interrupted turn', async () => {
  const { turns } = release.facts
  await until(async () => (await call('GET', `/api/turns/${turns.keyed}`)).body.status === 'done')
  for (const key of ['order-1', 'order-2']) {
    const repeat = await call('POST', '/webhook', { message: 'only once' }, { 'x-idempotency-key': key })
    expect(repeat, key).toMatchObject({ status: 200, body: { status: 'duplicate' } })
    expect((await call('GET', `/api/turns/${repeat.turnId}`)).body, key).toMatchObject({ status: 'done', finish_reason: 'stop' })
  }
  expect(askedFor('slow with a key')).toBe(1)
  expect(askedFor('only once')).toBe(0)
})

test('interrupted and queued messages are answered once and in order', async () => {
  const { chat } = release.facts
  await until(async () => (await inboxRow(chat.queued))?.state === 'done')
  const answers = await until(async () => {
    const found = platform.sent.filter(({ text }) => /slow question|behind the slow/.test(text))
    return found.length >= 2 && found
  })
  expect(answers.map(({ text }) => text)).toEqual(['Answered: a slow question', 'Answered: a question behind the slow one'])
  const request = model.requests.find(({ lastUserText }) => withoutFrames(lastUserText).endsWith('behind the slow one'))
  expect(JSON.stringify(request?.body)).toContain('You said: hello')
})

test('a repeated message of the first release is a duplicate', async () => {
  const { chat } = release.facts
  const before = model.requests.length
  const repeat = chatappRequest({ id: chat.interrupted, text: 'a slow question' })
  expect(await sendRequest(daemon.url, repeat)).toMatchObject({ status: 200 })
  expect((await daemon.runtime.store.inbox.list({ limit: 100 })).filter(({ messageId }) => messageId === chat.interrupted)).toHaveLength(1)
  expect(model.requests.slice(before).filter(({ lastUserText }) => withoutFrames(lastUserText) === 'a slow question')).toEqual([])
})

test('dead and ambiguous deliveries are listed and can be replayed', async () => {
  const { chat } = release.facts
  const dead = await inboxRow(chat.poisoned)
  expect(dead).toMatchObject({ state: 'dead', error: expect.stringContaining('400') })
  expect((await call('POST', `/api/deliveries/inbox/${dead?.number}/replay`)).status).toBe(200)
  await until(async () => (await inboxRow(chat.poisoned))?.state === 'done')
  const { body } = await call('GET', '/api/deliveries/outbox?limit=100')
  const left = body.replies.filter(({ text }: { text: string }) => /refuse-me|fail-me/.test(text))
  expect(left.map(({ state }: { state: string }) => state).toSorted()).toEqual(['ambiguous', 'dead'])
  for (const { number } of left) expect((await call('POST', `/api/deliveries/outbox/${number}/replay`)).status).toBe(200)
  // The platform asked for an hour's delay of the third reply to this person; replies to one person keep their order.
  await clock.advance(3_600_000)
  await until(async () =>
    ['refuse-me', 'fail-me', 'later-please'].every((text) => platform.sent.some((sent) => sent.text === `You said: ${text}`)),
  )
})

test('an approval of a program can be decided', async () => {
  expect(await decide(release.facts.questions.program)).toMatchObject({ status: 200, body: { state: 'approved' } })
})

test('a waiting tool call of a sender whom only `*` admits is asked of operators and runs after their approval', async () => {
  const { chat } = release.facts
  const made = join(release.dataDir, 'workspace/made-after-approval')
  expect(existsSync(made)).toBe(false)
  // The first release did not bind its approval to the call, so that approval is withdrawn and a new one is asked for.
  const question = await until(async () => {
    const { body } = await call('GET', '/api/approvals?state=pending')
    return body.approvals.find((approval: Readonly<Record<string, unknown>>) => approval.workflow_name === 'shell')
  })
  const yes = chatappRequest({ id: 'wamid.YES', text: 'approve', from: '15550005555' })
  expect(await sendRequest(daemon.url, yes)).toMatchObject({ status: 200 })
  expect(platform.sent.filter(({ text }) => text.startsWith('shell wants to run'))).toEqual([])
  expect(existsSync(made)).toBe(false)
  expect(await decide([question.run_id, question.step_id])).toMatchObject({ status: 200 })
  await until(async () => (await inboxRow(chat.running))?.state === 'done')
  expect(existsSync(made)).toBe(true)
  // Messages of the person while the turn runs decide nothing here, and the model gets them at its next step.
  expect(askedFor('approve')).toBe(1)
  const [request] = model.requests.filter(({ lastUserText }) => withoutFrames(lastUserText).endsWith('approve'))
  expect(JSON.stringify(request?.body).match(/"role":"tool"/g)).toHaveLength(1)
})

test('memories of devices and of chats can be read', async () => {
  const { memory } = daemon.runtime.store
  const readers = ['device:any', 'channel:chatapp/1/15550001111']
  for (const reader of readers) {
    const found = new Map((await memory.search(reader, '', 100)).map((entry) => [entry.key, entry.content]))
    for (const [key, content] of Object.entries(release.facts.memories)) expect(found.get(key), key).toBe(content)
  }
})

test('a waiting run continues after approval, and an interrupted run ends', async () => {
  const { runs, questions } = release.facts
  const ended = (run: string) =>
    until(async () => {
      const { body } = await call('GET', `/api/sops/runs/${run}`)
      return body.ended_at ? body : undefined
    })
  expect(await decide(questions.waiting)).toMatchObject({ status: 200 })
  expect(await ended(runs.waiting)).toMatchObject({ status: 'completed' })
  expect(await ended(runs.working)).toMatchObject({ status: 'completed' })
  expect((await call('GET', `/api/sops/runs/${runs.shipped}`)).body).toMatchObject({ status: 'completed' })
})

test('procedures in the workspace still start', async () => {
  const started = await call('POST', '/report', {})
  expect(started).toMatchObject({ body: { results: [{ sop: 'report', status: 'started' }] } })
})

test('a conversation of the first release that outgrows the window is summarised', async () => {
  const { configFile } = release
  writeFileSync(configFile, readFileSync(configFile, 'utf8').replace('[agent]\n', '[agent]\nmax_history_messages = 2\n'))
  const count = async () => ((await call('GET', '/api/sessions/diary')).body as { message_count: number }).message_count
  const before = await count()
  expect(before).toBeGreaterThan(2)
  const session = await until(async () => {
    await call('POST', '/webhook', { message: 'go on' }, { 'x-session-id': 'diary' })
    const { body } = await call('GET', '/api/sessions/diary')
    return body.summary !== null && body
  })
  expect(session.summary).toMatchObject({ text: expect.stringContaining('Answered: '), model: 'test-model' })
  expect(JSON.stringify((await call('GET', '/api/sessions/diary/messages?limit=200')).body)).toContain('My name is Ada.')
  const request = model.requests.find(({ body }) => JSON.stringify(body).includes('You write the memory of an assistant'))
  expect(JSON.stringify(request?.body)).toContain('My name is Ada.')
})
