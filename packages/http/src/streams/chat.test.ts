/** A conversation without a socket. */

import { type LimitedClient, Shares } from '@sluice/agent'
import { openTestApprovals, type TestApprovals } from '@sluice/approvals/testing/test-approvals'
import { NO_SHARES } from '@sluice/config'
import { createEventBus } from '@sluice/runtime'
import { AppError, type ClientId, type Role } from '@sluice/sdk'
import { testHost } from '@sluice/testkit/host'
import fc from 'fast-check'
import { afterEach, describe, expect, test } from 'vitest'
import { Chat } from './chat.ts'
import { type ChatFrame, CONTENT_BYTES_MAX, parseClientFrame } from './chat-frames.ts'
import { Inbox } from './testing/inbox.ts'
import { ScriptedAgent } from './testing/scripted-agent.ts'

const open: TestApprovals[] = []
afterEach(async () => {
  for (const kept of open.splice(0)) await kept.close()
})

function setUp({ role = 'operator', person = {} }: { readonly role?: Role; readonly person?: { person?: string } } = {}) {
  const host = testHost()
  const agent = new ScriptedAgent()
  const frames = new Inbox<ChatFrame>()
  const { clock, log } = host
  const kept = openTestApprovals({ bus: createEventBus({ clock, run: 'test' }), clock, log })
  open.push(kept)
  const { approvals } = kept
  const sharesOf = ({ standing }: LimitedClient) =>
    standing === 'operator' ? NO_SHARES : { ...NO_SHARES, turnsWaiting: 2, waitingBytes: 40 }
  const shares = new Shares({ clock, events: host.events, sharesOf })
  const allowed: { yes: boolean | Promise<boolean> } = { yes: true }
  const chat = new Chat({
    agent,
    approvals,
    shares,
    people: { principal: (limited) => ({ ...limited, ...person }) },
    log,
    client: 'client-1' as ClientId,
    caller: 'device:d1',
    role,
    by: 'device:d1',
    session: 'd1/s',
    send: (frame) => frames.push(frame),
    mayAct: () => allowed.yes,
  })
  const say = (content: unknown) => chat.receive(JSON.stringify({ type: 'message', content }))
  return {
    host,
    agent,
    allowed,
    approvals,
    shares,
    start: kept.start,
    chat,
    frames,
    say,
    send: (frame: unknown) => chat.receive(JSON.stringify(frame)),
  }
}

test('messages that wait in a chat count for the waiting turns of the client, and further ones are refused', async () => {
  const { agent, say, frames, shares, chat } = setUp({ role: 'client' })
  const client = { client: 'device:d1' }
  say('first')
  await agent.turn(1)
  expect(shares.heldBy(client, 'turnsWaiting')).toBe(0)
  say('second')
  say('x'.repeat(40))
  say('third')
  say('fourth')
  const refused = { type: 'error', code: 'AGENT_ERROR', error_code: 'share_used' }
  expect(await frames.first(2)).toMatchObject([refused, { ...refused, message: expect.stringContaining('turns_waiting') }])
  expect([shares.heldBy(client, 'turnsWaiting'), shares.heldBy(client, 'waitingBytes')]).toEqual([2, 11])
  chat.close()
  expect(shares.heldBy(client, 'turnsWaiting')).toBe(0)
})

test('messages that wait in a chat count for the linked person of the client', async () => {
  const { agent, say, shares, frames } = setUp({ role: 'client', person: { person: 'channel:x/bot/ann' } })
  const ann = { client: 'channel:x/bot/ann', standing: 'listed' } as const
  say('first')
  await agent.turn(1)
  say('second')
  expect([shares.heldBy(ann, 'turnsWaiting'), shares.heldBy({ client: 'device:d1' }, 'turnsWaiting')]).toEqual([1, 0])
  shares.count(ann, 'turnsWaiting')
  say('third')
  expect(await frames.first(1)).toMatchObject([{ type: 'error', error_code: 'share_used' }])
})

test('a turn learns of the next message as soon as it waits', async () => {
  const { agent, say } = setUp()
  say('forward')
  const first = await agent.turn(1)
  expect(first.request.superseded?.aborted).toBe(false)
  say('stop')
  say('now')
  expect(first.request.superseded?.aborted).toBe(true)
  first.done('stopped')
  const second = await agent.turn(2)
  expect(second.request.superseded?.aborted).toBe(true)
  second.done('stopped')
  expect((await agent.turn(3)).request.superseded?.aborted).toBe(false)
})

const ASKED = {
  tool: 'shell',
  summary: 'command: ls',
  agent: 'main',
  callHash: 'h1',
  decider: 'asker' as const,
  standing: 'client' as const,
  sources: [],
  turn: 'turn-1',
  session: 'd1/s',
  callId: 'call-1',
  inbox: null,
}
const KEY = { runId: 'turn-1', stepId: 'call-1' }

describe('after the token was revoked', () => {
  test('input has no effect: no turn, no abort, no answer', async () => {
    const { agent, allowed, frames, say, send } = setUp()
    say('before')
    const turn = await agent.turn(1)
    allowed.yes = false
    say('after')
    expect(turn.request.signal?.aborted).toBe(true)
    turn.fail(new AppError('aborted', 'aborted'))
    for (const frame of [
      { type: 'message', content: 'again' },
      { type: 'approval_response', request_id: 'r', decision: 'approve' },
    ])
      send(frame)
    expect(await frames.first(2)).toMatchObject([{ type: 'error', code: 'AUTH_ERROR' }, { type: 'aborted' }])
    expect(agent.turns.all).toHaveLength(1)
  })

  test('no waiting message becomes a turn', async () => {
    const { agent, allowed, frames, say } = setUp()
    say('first')
    say('waits')
    const turn = await agent.turn(1)
    allowed.yes = false
    turn.done('done')
    expect(await frames.first(2)).toMatchObject([{ type: 'done' }, { type: 'error', code: 'AUTH_ERROR' }])
    expect(agent.turns.all).toHaveLength(1)
  })

  test('a slow lookup of the token keeps the order of the input', async () => {
    const { agent, allowed, say } = setUp()
    const answer = Promise.withResolvers<boolean>()
    allowed.yes = answer.promise
    say('one')
    allowed.yes = true
    say('two')
    expect(agent.turns.all).toHaveLength(0)
    answer.resolve(true)
    expect((await agent.turn(1)).request.text).toBe('one')
  })
})

test('a message runs one turn, whose parts are sent as they come', async () => {
  const { agent, frames, say } = setUp()
  say('hello')
  const turn = await agent.turn(1)
  expect(turn.request).toMatchObject({ source: 'ws', session: 'd1/s', text: 'hello', client: 'client-1' })
  turn.request.listen?.({ type: 'thinking', delta: 'hm' })
  turn.request.listen?.({ type: 'tool_call', id: 'c1', name: 'file_read', input: { path: 'a' } })
  turn.request.listen?.({ type: 'tool_result', id: 'c1', name: 'file_read', output: 'text', outcome: 'ok' })
  turn.request.listen?.({ type: 'text', delta: 'Hel' })
  turn.done('Hello')
  expect(await frames.first(5)).toEqual([
    { type: 'thinking', content: 'hm' },
    { type: 'tool_call', id: 'c1', name: 'file_read', args: { path: 'a' } },
    { type: 'tool_result', id: 'c1', name: 'file_read', output: 'text' },
    { type: 'chunk', content: 'Hel' },
    {
      type: 'done',
      full_response: 'Hello',
      turn_id: 'turn-1',
      model: 'fake:model',
      finish_reason: 'stop',
      input_tokens: 3,
      output_tokens: 5,
      cost_usd: 0.25,
    },
  ])
})

test('one turn runs, eight messages wait, and the next one is refused', async () => {
  const { agent, frames, say } = setUp()
  for (let n = 0; n < 10; n++) say(`m${n}`)
  expect(agent.turns.all).toHaveLength(1)
  expect(frames.all).toMatchObject([{ type: 'error', code: 'SESSION_QUEUE_FULL' }])
  for (let n = 1; n <= 9; n++) (await agent.turn(n)).done('ok')
  await frames.first(10)
  expect(agent.turns.all.map(({ request }) => request.text)).toEqual(['m0', 'm1', 'm2', 'm3', 'm4', 'm5', 'm6', 'm7', 'm8'])
  say('again')
  expect((await agent.turn(10)).request.text).toBe('again')
})

test('abort ends the running turn, and the next message runs', async () => {
  const { agent, frames, say, send } = setUp()
  send({ type: 'abort' })
  say('one')
  say('two')
  await agent.turn(1)
  send({ type: 'abort' })
  expect(await frames.first(1)).toEqual([{ type: 'aborted', turn_id: 'turn-1' }])
  const second = await agent.turn(2)
  second.done('done')
  expect((await frames.first(2)).at(-1)).toMatchObject({ type: 'done', turn_id: 'turn-2' })
  send({ type: 'abort' })
  expect(frames.all).toHaveLength(2)
})

test('a client that leaves aborts its turn and drops waiting messages', async () => {
  const { agent, chat, frames, say } = setUp()
  say('one')
  say('two')
  const { request } = await agent.turn(1)
  chat.close()
  chat.close()
  expect(request.signal?.aborted).toBe(true)
  await frames.first(1)
  say('three')
  expect(agent.turns.all).toHaveLength(1)
})

test.each([
  ['PROVIDER_ERROR', new AppError('upstream', 'The model failed')],
  ['PROVIDER_ERROR', new AppError('upstream_timeout', 'The model was too slow')],
  ['AUTH_ERROR', new AppError('forbidden', 'Not you')],
  ['AGENT_ERROR', new AppError('unavailable', 'Too many turns wait')],
  ['AGENT_ERROR', new AppError('rate_limited', 'The budget is spent')],
  ['TOO_LARGE', new AppError('too_large', 'Too much')],
])('a failed turn sends an error frame: %s for %s', async (code, error) => {
  const { agent, frames, say } = setUp()
  say('hello')
  const turn = await agent.turn(1)
  turn.fail(error)
  expect(await frames.first(1)).toMatchObject([{ type: 'error', code, message: error.message }])
})

test('a bug is logged and answered with a fixed text', async () => {
  const { host, agent, frames, say } = setUp()
  say('hello')
  const turn = await agent.turn(1)
  turn.fail(new Error('secret detail'))
  expect(await frames.first(1)).toMatchObject([{ type: 'error', code: 'AGENT_ERROR', message: 'Internal error' }])
  expect(host.logs.filter(({ level }) => level === 'error')).toHaveLength(1)
})

describe('approvals', () => {
  async function ask() {
    const parts = setUp()
    await parts.start()
    parts.say('hello')
    const { request } = await parts.agent.turn(1)
    const cancel = new AbortController()
    const answer = request.approve?.(ASKED, cancel.signal)
    const [asked] = await parts.frames.first(1)
    if (asked?.type !== 'approval_request') throw new Error('no approval was requested')
    return { ...parts, answer, cancel, asked }
  }

  test.each([
    ['approve', { by: 'device:d1', standing: 'operator' }],
    ['deny', false],
  ])('%s answers the tool %s', async (decision, approved) => {
    const { answer, asked, send } = await ask()
    expect(asked).toMatchObject({ tool: 'shell', arguments_summary: 'command: ls', timeout_secs: 120 })
    send({ type: 'approval_response', request_id: asked.request_id, decision })
    expect(await answer).toEqual(approved)
  })

  test('a tool is rejected after two minutes, and a late answer is refused', async () => {
    const { host, answer, asked, frames, send } = await ask()
    await host.advance(119_999)
    await host.advance(1)
    expect(await answer).toBe(false)
    send({ type: 'approval_response', request_id: asked.request_id, decision: 'approve' })
    expect((await frames.first(2)).at(-1)).toMatchObject({ type: 'error', code: 'INVALID_APPROVAL_RESPONSE' })
  })

  test('an answer that is given elsewhere counts', async () => {
    const { approvals, answer } = await ask()
    expect(await approvals.get(KEY)).toMatchObject({ gate: 'tool', workflow: 'shell', message: 'command: ls', state: 'pending' })
    await approvals.decide(KEY, { state: 'approved', by: 'cli:ops', who: { standing: 'operator', isAsked: true } })
    expect(await answer).toEqual({ by: 'cli:ops', standing: 'operator' })
  })

  test('the end of the turn or of the connection withdraws the question', async () => {
    const cancelled = await ask()
    cancelled.cancel.abort()
    expect(await cancelled.answer).toBe(false)
    expect(await cancelled.approvals.get(KEY)).toMatchObject({ state: 'cancelled', by: 'system' })
    const { chat, agent, answer, cancel } = await ask()
    agent.turns.all[0]?.request.signal?.addEventListener('abort', () => cancel.abort())
    chat.close()
    expect(await answer).toBe(false)
  })

  test('a stop of the daemon keeps the question for the resumed turn', async () => {
    const { approvals, answer, cancel, agent } = await ask()
    await approvals.stop()
    cancel.abort()
    expect(await answer).toBe(false)
    expect(await approvals.get(KEY)).toMatchObject({ state: 'pending' })
    await approvals.decide(KEY, { state: 'approved', by: 'device:d2', who: { standing: 'operator', isAsked: true } })
    const { request } = await agent.turn(1)
    expect(await request.approve?.(ASKED, new AbortController().signal)).toEqual({ by: 'device:d2', standing: 'operator' })
  })

  test('the approval of one call does not approve another with the same id', async () => {
    const { send, asked, answer, agent, frames } = await ask()
    send({ type: 'approval_response', request_id: asked.request_id, decision: 'approve' })
    expect(await answer).toMatchObject({ by: 'device:d1' })
    const { request } = await agent.turn(1)
    const cancel = new AbortController()
    const other = request.approve?.({ ...ASKED, summary: 'command: rm -rf .', agent: 'main', callHash: 'h2' }, cancel.signal)
    expect((await frames.first(2)).at(-1)).toMatchObject({ type: 'approval_request', arguments_summary: 'command: rm -rf .' })
    cancel.abort()
    expect(await other).toBe(false)
  })

  test('only an open question can be answered, by its id', async () => {
    const { answer, asked, cancel, frames, send } = await ask()
    send({ type: 'approval_response', request_id: 'another', decision: 'approve' })
    send({ type: 'approval_response', request_id: asked.request_id, decision: 'always' })
    send({ type: 'approval_response', request_id: asked.request_id })
    expect((await frames.first(4)).slice(1)).toMatchObject(Array(3).fill({ type: 'error', code: 'INVALID_APPROVAL_RESPONSE' }))
    cancel.abort()
    expect(await answer).toBe(false)
  })

  test('more than 64 open questions are rejected', async () => {
    const { agent, frames } = await ask()
    const { request } = await agent.turn(1)
    const cancel = new AbortController()
    const answers = Array.from({ length: 64 }, (_, index) => request.approve?.({ ...ASKED, callId: `call-${index + 2}` }, cancel.signal))
    expect(await answers.at(-1)).toBe(false)
    expect(await frames.first(64)).toHaveLength(64)
    cancel.abort()
    expect(await Promise.all(answers)).toEqual(Array(64).fill(false))
  })
})

describe('frames of the client', () => {
  test.each([
    ['INVALID_JSON', 'hello'],
    ['INVALID_JSON', ''],
    ['INVALID_JSON', '[1]'],
    ['INVALID_JSON', 'null'],
    ['UNKNOWN_MESSAGE_TYPE', '{}'],
    ['UNKNOWN_MESSAGE_TYPE', '{"type":"toString"}'],
    ['UNKNOWN_MESSAGE_TYPE', '{"type":["message"]}'],
    ['EMPTY_CONTENT', '{"type":"message"}'],
    ['EMPTY_CONTENT', '{"type":"message","content":" \\n"}'],
    ['EMPTY_CONTENT', '{"type":"message","content":["x"]}'],
    ['TOO_LARGE', JSON.stringify({ type: 'message', content: 'ü'.repeat(CONTENT_BYTES_MAX / 2 + 1) })],
    ['INVALID_APPROVAL_RESPONSE', '{"type":"approval_response","decision":"approve"}'],
  ])('%s is answered to %j', (code, text) => {
    const { agent, chat, frames } = setUp()
    chat.receive(text)
    expect(frames.all).toMatchObject([{ type: 'error', code }])
    expect(agent.turns.all).toHaveLength(0)
  })

  test('content up to the limit is accepted', () => {
    const content = 'x'.repeat(CONTENT_BYTES_MAX)
    expect(parseClientFrame(JSON.stringify({ type: 'message', content }))).toEqual({ type: 'message', content })
  })

  test('no text makes the parser throw', () => {
    fc.assert(fc.property(fc.oneof(fc.string(), fc.json()), (text) => ['invalid', 'abort'].includes(parseClientFrame(text).type)))
  })
})
