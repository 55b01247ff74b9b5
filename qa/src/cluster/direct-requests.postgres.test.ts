/** Requests of clients to the nodes of a cluster: keys, aborts, chats, and a node that is killed in the middle of its turns. */
import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { withoutSituation } from '@sluice/testkit/model-server'
import { openaiWire } from '@sluice/testkit/model-wire-openai'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { ClusterNode } from './cluster-node.ts'
import { startCluster, type TestCluster } from './test-cluster.ts'

let cluster: TestCluster
let model: Server
const asked: string[] = []
/** Messages that wait for their answer. */
const held = new Map<string, PromiseWithResolvers<void>>()

/** The answer to this message waits until it is released. */
function hold(text: string): () => void {
  const gate = Promise.withResolvers<void>()
  held.set(text, gate)
  return () => {
    held.delete(text)
    gate.resolve()
  }
}

/** Answers as the service of an OpenAI-compatible model does, as a stream where one is asked for. */
async function answer(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
  const chunks: Buffer[] = []
  for await (const chunk of incoming as AsyncIterable<Buffer>) chunks.push(chunk)
  const body = JSON.parse(Buffer.concat(chunks).toString())
  const text = withoutSituation(openaiWire.lastUserText(body))
  asked.push(text)
  await held.get(text)?.promise
  const usage = { inputTokens: 1, outputTokens: 1 }
  const reply = { number: asked.length, model: 'm', text: `answer to ${text}`, toolCalls: [], usage, cutShort: false, thinking: '' }
  if (body.stream) outgoing.writeHead(200, { 'content-type': 'text/event-stream' }).end(openaiWire.events(reply, body).join(''))
  else outgoing.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(openaiWire.json(reply)))
}

beforeAll(async () => {
  model = createServer((incoming, outgoing) => void answer(incoming, outgoing).catch(() => outgoing.destroy())).listen(0, '127.0.0.1')
  await once(model, 'listening')
  const url = `http://127.0.0.1:${(model.address() as AddressInfo).port}/v1`
  const toml = `[gateway]\nrequire_pairing = false\n[provider]\nkind = "openai"\nbase_url = "${url}"\nmodel = "m"\n`
  cluster = await startCluster({ toml })
}, 120_000)
afterAll(async () => {
  await cluster?.close()
  model?.closeAllConnections()
  model?.close()
})

const [one, two] = [() => nodeAt(0), () => nodeAt(1)]
const nodeAt = (at: number): ClusterNode => cluster.nodes[at] ?? expect.fail(`there is no node ${at}`)

interface Answered {
  readonly status: number
  readonly turn: string | null
  readonly body: { readonly response?: string; readonly status?: string; readonly state?: string; readonly turn_id?: string }
}

async function post(node: ClusterNode, message: string, headers: Readonly<Record<string, string>> = {}): Promise<Answered> {
  const response = await fetch(`${node.url}/webhook`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify({ message }),
  })
  return { status: response.status, turn: response.headers.get('x-turn-id'), body: (await response.json()) as Answered['body'] }
}

const turnAt = async (node: ClusterNode, id: string) =>
  (await (await fetch(`${node.url}/api/turns/${id}`)).json()) as { readonly status: string; readonly response: string | null }

const timesAsked = (text: string): number => asked.filter((one) => one === text).length

interface Frame {
  readonly type: string
  readonly content?: string
  readonly full_response?: string
}

/** A chat over a WebSocket, with the frames that came so far. */
async function chat(node: ClusterNode, session: string) {
  const socket = new WebSocket(`${node.url?.replace('http', 'ws')}/ws/chat?session_id=${session}`)
  const frames: Frame[] = []
  socket.addEventListener('message', ({ data }) => frames.push(JSON.parse(String(data))))
  await once(socket, 'open')
  return { socket, frames, say: (content: string) => socket.send(JSON.stringify({ type: 'message', content })) }
}

describe('an idempotency key', () => {
  test('that reaches two nodes at once runs one turn, and both nodes name it, also after its end', async () => {
    for (let number = 0; number < 8; number++) {
      const message = `key ${number}`
      const headers = { 'x-idempotency-key': `k${number}`, 'x-session-id': `keys-${number % 2}` }
      const answers = await Promise.all([post(one(), message, headers), post(two(), message, headers)])
      expect(answers.map(({ status }) => status)).toEqual([200, 200])
      const [ran, ...others] = answers.filter(({ body }) => body.response !== undefined)
      expect([ran?.body.response, others.length, timesAsked(message)]).toEqual([`answer to ${message}`, 0, 1])
      const duplicate = answers.find(({ body }) => body.status === 'duplicate')
      expect(duplicate?.turn).toBe(ran?.body.turn_id)
      for (const node of [one(), two()]) {
        expect(await post(node, message, headers)).toMatchObject({ turn: ran?.body.turn_id, body: { status: 'duplicate' } })
        expect(await turnAt(node, ran?.body.turn_id ?? '')).toMatchObject({ status: 'done', response: `answer to ${message}` })
      }
      expect(timesAsked(message)).toBe(1)
    }
  }, 60_000)

  test('is free again on both nodes after its turn was aborted on the other one', async () => {
    const release = hold('to be aborted')
    const headers = { 'x-idempotency-key': 'aborted' }
    const { body } = await post(one(), 'to be aborted', { ...headers, prefer: 'respond-async' })
    const id = body.turn_id ?? expect.fail('it was not accepted')
    await expect.poll(() => timesAsked('to be aborted')).toBe(1)
    expect(await turnAt(two(), id)).toMatchObject({ status: 'running' })
    expect(await post(two(), 'to be aborted', headers)).toMatchObject({ turn: id, body: { status: 'duplicate', state: 'in_flight' } })
    expect((await fetch(`${two().url}/api/turns/${id}/abort`, { method: 'POST' })).status).toBe(200)
    await expect.poll(() => turnAt(two(), id)).toMatchObject({ status: 'aborted' })
    release()
    expect(await post(two(), 'to be aborted', headers)).toMatchObject({ status: 200, body: { response: 'answer to to be aborted' } })
    expect(await post(one(), 'to be aborted', headers)).toMatchObject({ status: 200, body: { status: 'duplicate' } })
  }, 60_000)
})

test('a chat goes on while the shard of its session moves away and back, and its client gets each part', async () => {
  const release = hold('through a move')
  const { socket, frames, say } = await chat(one(), 'moving')
  say('through a move')
  await expect.poll(() => timesAsked('through a move')).toBe(1)
  // All shards move to this node, and then half of them away from it.
  expect(await two().end('SIGTERM')).toBe(0)
  await two().start()
  await sleep(2000)
  release()
  await expect.poll(() => frames.at(-1)).toMatchObject({ type: 'done', full_response: 'answer to through a move' })
  expect(timesAsked('through a move')).toBe(1)
  socket.close()
  const again = await chat(two(), 'moving')
  again.say('on the other node')
  await expect.poll(() => again.frames.at(-1)).toMatchObject({ full_response: 'answer to on the other node' })
  again.socket.close()
}, 90_000)

test('after a kill another node ends the stored turn once, and a chat of the same session continues there', async () => {
  hold('before the kill')
  hold('in the chat')
  const headers = { 'x-idempotency-key': 'killed', 'x-session-id': 'stored' }
  const gone = post(one(), 'before the kill', headers).catch(() => 'broken off')
  const broken = await chat(one(), 'unstored')
  broken.say('in the chat')
  await expect.poll(() => [timesAsked('before the kill'), timesAsked('in the chat')]).toEqual([1, 1])
  const id = (await post(two(), 'before the kill', headers)).turn ?? expect.fail('the key is not known')
  held.clear()
  await one().end('SIGKILL')
  expect(await gone).toBe('broken off')
  const again = await chat(two(), 'unstored')
  again.say('after the kill')
  await expect.poll(() => turnAt(two(), id)).toMatchObject({ status: 'done', response: 'answer to before the kill' })
  await expect.poll(() => again.frames.at(-1)).toMatchObject({ type: 'done', full_response: 'answer to after the kill' })
  // The turn that was not stored is not repeated.
  expect([timesAsked('before the kill'), timesAsked('in the chat')]).toEqual([2, 1])
  expect(await post(two(), 'before the kill', headers)).toMatchObject({ turn: id, body: { status: 'duplicate' } })
  await one().start()
  expect(await post(one(), 'before the kill', headers)).toMatchObject({ turn: id, body: { status: 'duplicate' } })
  again.socket.close()
}, 120_000)
