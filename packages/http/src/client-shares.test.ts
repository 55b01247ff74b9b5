/** The shares of clients over real connections: bodies that arrive, and answers that are not read. */
import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import type { Runtime } from '@sluice/runtime'
import { defineRoute } from '@sluice/sdk'
import * as v from 'valibot'
import { afterEach, expect, test } from 'vitest'
import { listen } from './server/listen.ts'
import { type TestGatewayOptions, testGateways } from './testing.ts'

const gateway = testGateways()
const closers: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of closers.splice(0)) await close()
})

const MB = 1024 * 1024

/** A daemon with a route that answers the length of its body, and one with an answer that is larger than the buffers of a connection. */
async function daemon(shares: NonNullable<TestGatewayOptions['shares']>, reply?: () => string) {
  const routes = [
    defineRoute({
      method: 'POST',
      path: '/api/length',
      summary: 'The length of a body',
      auth: 'client',
      bodyBytesMax: 4 * MB,
      body: v.object({ text: v.string() }),
      answers: {},
      handle: ({ body }) => ({ length: body.text.length }),
    }),
    defineRoute({
      method: 'GET',
      path: '/api/large',
      summary: 'A large answer',
      auth: 'client',
      answers: {},
      handle: () => ({ text: 'x'.repeat(16 * MB) }),
    }),
  ]
  const made = gateway({ shares, snapshot: { routes }, ...(reply && { reply }) })
  const server = await listen({ ...made.parts, host: '127.0.0.1', port: 0 })
  closers.push(() => server.close(0))
  const devices = { client: await made.pair('c', null, 'client'), operator: await made.pair('o', null, 'operator') }
  const client = { client: `device:${devices.client.device}`, standing: 'listed' } as const
  const open = (path: string, role: 'client' | 'operator', headers = {}) =>
    request(`http://127.0.0.1:${server.port}${path}`, {
      method: path.startsWith('/api/large') || path.startsWith('/api/sessions') ? 'GET' : 'POST',
      agent: false,
      headers: { authorization: `Bearer ${devices[role].token}`, 'content-type': 'application/json', ...headers },
    }).on('error', () => {})
  const answered = async (sent: ReturnType<typeof open>): Promise<IncomingMessage> => (await once(sent, 'response'))[0]
  return {
    shares: made.runtime.shares,
    runtime: made.runtime as { -readonly [Key in keyof Runtime]: Runtime[Key] },
    client,
    open,
    answered,
  }
}

const bodyOf = (bytes: number) => JSON.stringify({ text: 'x'.repeat(bytes) })

test('a body counts while it arrives, and another one beyond the share is refused before it is read', async () => {
  const { shares, client, open, answered } = await daemon({ waitingBytes: MB })
  const slow = open('/api/length', 'client')
  slow.write(bodyOf(MB).slice(0, 200_000))
  await expect.poll(() => shares.heldBy(client, 'waitingBytes')).toBe(200_000)
  const announced = open('/api/length', 'client', { 'content-length': String(MB) })
  announced.flushHeaders()
  expect((await answered(announced)).statusCode).toBe(429)
  announced.destroy()
  const chunked = open('/api/length', 'client')
  chunked.end(bodyOf(MB))
  expect((await answered(chunked)).statusCode).toBe(429)
  for (const [bytes, role] of [
    [1000, 'client'],
    [2 * MB, 'operator'],
  ] as const) {
    const sent = open('/api/length', role)
    sent.end(bodyOf(bytes))
    expect((await answered(sent)).statusCode).toBe(200)
  }
  slow.destroy()
  await expect.poll(() => shares.heldBy(client, 'waitingBytes')).toBe(0)
})

test('a body that a client sends alone has room whatever its share', async () => {
  const { open, answered, shares, client } = await daemon({ waitingBytes: MB })
  const sent = open('/api/length', 'client')
  sent.end(bodyOf(3 * MB))
  expect((await answered(sent)).statusCode).toBe(200)
  expect(shares.heldBy(client, 'waitingBytes')).toBe(0)
})

test('an operator sees what clients hold', async () => {
  const made = gateway()
  const { token } = await made.pair()
  const client = { client: 'device:d', standing: 'listed' } as const
  using _ = made.runtime.shares.countWaiting(client, 3 * MB)
  const response = await made.request('/api/limits', { headers: { authorization: `Bearer ${token}` } })
  expect(await response.json()).toEqual({
    limits: [],
    shares: [
      { client: 'device:d', share: 'turns_waiting', held: 1 },
      { client: 'device:d', share: 'waiting_mb', held: 3 },
    ],
  })
})

test('a large answer is a download until it is sent', async () => {
  const { open, answered, shares, client } = await daemon({ downloads: 2 })
  const unread = []
  for (let n = 0; n < 2; n++) {
    const sent = open('/api/large', 'client')
    sent.end()
    const response = await answered(sent)
    response.pause()
    unread.push(response)
  }
  expect(shares.heldBy(client, 'downloads')).toBe(2)
  for (const [role, status] of [
    ['client', 429],
    ['operator', 200],
  ] as const) {
    const sent = open('/api/large', role)
    sent.end()
    const response = await answered(sent)
    expect(response.statusCode).toBe(status)
    response.destroy()
  }
  unread[0]?.resume()
  unread[1]?.destroy()
  await expect.poll(() => shares.heldBy(client, 'downloads')).toBe(0)
})

test('a file counts as a download while it is sent, and is read no faster than its reader takes it', async () => {
  const { shares, client, runtime, open, answered } = await daemon({ downloads: 1 }, () => '[FILE:large.bin]')
  const workspace = runtime.workspaceOf('main')
  if (!workspace) throw new Error('the agent has no workspace')
  await workspace.write('large.bin', new Uint8Array(16 * MB))
  const opened: { bytes: number; isClosed: boolean }[] = []
  const counting: typeof workspace = {
    ...workspace,
    as: () => counting,
    async open(path, options) {
      const file = await workspace.open(path, options)
      const seen = { bytes: 0, isClosed: false }
      opened.push(seen)
      return {
        ...file,
        async read() {
          const piece = await file.read()
          seen.bytes += piece.length
          return piece
        },
        [Symbol.asyncDispose]: async () => {
          seen.isClosed = true
        },
      }
    },
  }
  runtime.workspaceOf = () => counting
  const said = open('/webhook', 'client', { 'x-session-id': 's' })
  said.end(JSON.stringify({ message: 'the file' }))
  ;(await answered(said)).resume()
  const path = '/api/sessions/s/file?path=large.bin'
  const first = open(path, 'client')
  first.end()
  const response = await answered(first)
  response.pause()
  expect(response.headers['content-length']).toBe(String(16 * MB))
  expect(shares.heldBy(client, 'downloads')).toBe(1)
  const second = open(path, 'client')
  second.end()
  expect((await answered(second)).statusCode).toBe(429)
  expect(opened).toEqual([{ bytes: expect.any(Number), isClosed: false }])
  expect(opened[0]?.bytes).toBeLessThan(16 * MB)
  response.destroy()
  await expect.poll(() => [opened[0]?.isClosed, shares.heldBy(client, 'downloads')]).toEqual([true, 0])
  const third = open(path, 'client')
  third.end()
  let bytes = 0
  for await (const piece of await answered(third)) bytes += piece.length
  expect(bytes).toBe(16 * MB)
  await expect.poll(() => [opened[1]?.isClosed, shares.heldBy(client, 'downloads')]).toEqual([true, 0])
})
