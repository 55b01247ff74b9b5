import { createServer } from 'node:net'
import { setImmediate, setTimeout } from 'node:timers/promises'
import { type TestHost, testHost } from '@sluice/testkit/host'
import { afterEach, describe, expect, test } from 'vitest'
import type { Block, Reading } from '../chip-reader.ts'
import { type FakeGdbServer, type GdbServerBehavior, startFakeGdbServer } from '../testing/fake-gdb-server.ts'
import { listen } from '../testing/listen.ts'
import { frameOf } from './frames.ts'
import { GdbReader } from './gdb-reader.ts'

const RAM = 0x20000000
const PATTERN = '50524f42452d4f4befbeadde0df0feca'
const BLOCK: Block = { address: RAM, length: 16, width: 4 }
const TIMEOUT_MS = 5000

const open: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const close of open.splice(0)) await close()
})

interface Bench {
  readonly server: FakeGdbServer
  readonly host: TestHost
  read(blocks?: readonly Block[], signal?: AbortSignal): Promise<readonly Reading[]>
}

async function serverWith(options: GdbServerBehavior = {}): Promise<Bench> {
  const server = await startFakeGdbServer({ memory: { [RAM]: PATTERN }, ...options })
  open.push(server.close)
  const host = testHost()
  const reader = new GdbReader(host, server.address, TIMEOUT_MS)
  return { server, host, read: (blocks = [BLOCK], signal = new AbortController().signal) => reader.read(blocks, signal) }
}

const wire = (body: string) => Buffer.from(frameOf(body)).toString('latin1')
const hex = (readings: readonly Reading[]) => readings.map((bytes) => bytes && Buffer.from(bytes).toString('hex'))

/** Advances the clock until the reading has ended. */
async function advanceUntilDone<Result>(host: TestHost, reading: Promise<Result>): Promise<Result> {
  let isDone = false
  const done = reading.finally(() => {
    isDone = true
  })
  done.catch(() => undefined)
  while (!isDone) {
    await host.advance(50)
    await setTimeout(1)
  }
  return done
}

describe('GdbReader', () => {
  test('reads memory and lets the chip run on', async () => {
    const { server, read } = await serverWith()
    expect(hex(await read())).toEqual([PATTERN])
    await server.left()
    expect([server.requests.at(-1), server.isRunning()]).toEqual(['c', true])
  })

  test.each<[string, GdbServerBehavior]>([
    ['acknowledgements are turned off', { features: 'PacketSize=400;QStartNoAckMode+' }],
    ['replies come byte by byte', { sendsBytewise: true }],
    ['each reply is corrupt three times', { corruptReplies: 3 }],
    ['requests must be repeated', { rejections: 2 }],
    ['noise and half a packet come first', { noise: '\x00}garbage#00$m2000' }],
    ['a stop is reported without a request', { noise: wire('T02thread:01;') }],
    ['the program on the chip prints', { noise: wire('O68690a') }],
    ['there are a target description and small packets', { features: 'PacketSize=18;qXfer:features:read+' }],
  ])('reads memory when %s', async (_, options) => {
    const { server, read } = await serverWith(options)
    expect(hex(await read())).toEqual([PATTERN])
    await server.left()
    expect(server.isRunning()).toBe(true)
  })

  test('reads in pieces of the packet size and accepts short replies', async () => {
    const { server, read } = await serverWith({
      features: 'PacketSize=18',
      reply: (request, reply) => (request === `m${RAM.toString(16)},8` ? reply.slice(0, 6) : reply),
    })
    expect(hex(await read())).toEqual([PATTERN])
    expect(server.requests.filter((request) => request.startsWith('m'))).toEqual(['m20000000,8', 'm20000003,8', 'm2000000b,5'])
  })

  test('skips a refused block and reads the others', async () => {
    const { read } = await serverWith()
    expect(hex(await read([{ address: 0xe0042000, length: 4, width: 4 }, BLOCK]))).toEqual([undefined, PATTERN])
  })

  test('interrupts a chip that the connection does not halt', async () => {
    const { server, host, read } = await serverWith({ haltsWhenAsked: true })
    expect(hex(await advanceUntilDone(host, read()))).toEqual([PATTERN])
    await server.left()
    expect(server.requests).toContain('interrupt')
    expect(server.isRunning()).toBe(true)
  })

  test.each(['T05swbreak:;thread:01;', 'T05thread:01;hwbreak:;', 'T05watch:20000000;', 'W00'])(
    'keeps a chip halted that was halted before: %s',
    async (stopReply) => {
      const { server, read } = await serverWith({ stopReply })
      await read()
      await server.left()
      expect([server.requests.includes('c'), server.isRunning()]).toEqual([false, false])
    },
  )

  test('refuses another architecture', async () => {
    const { server, read } = await serverWith({ features: 'qXfer:features:read+', architecture: 'riscv:rv32' })
    await expect(read()).rejects.toMatchObject({ code: 'conflict', message: expect.stringContaining('riscv:rv32') })
    await server.left()
    expect(server.isRunning()).toBe(true)
  })

  test.each<[string, GdbServerBehavior]>([
    ['corrupts every reply', { corruptReplies: 99 }],
    ['rejects every request as corrupt', { rejections: 99 }],
    [
      'corrupts a reply without acknowledgements',
      { features: 'QStartNoAckMode+', reply: (_, reply) => (reply === PATTERN ? `${PATTERN}#zz$` : reply) },
    ],
    ['sends a packet without an end', { floods: `$${'a'.repeat(4096)}` }],
    ['sends packets without a request, without an end', { floods: wire('T05') }],
    ['sends noise without an end', { floods: '\x00'.repeat(4096) }],
    ['sends run lengths that explode', { floods: `$a${'*~'.repeat(1000)}` }],
    ['sends more memory than requested', { reply: (request, reply) => (request.startsWith('m') ? `${reply}00` : reply) }],
  ])('throws for a server that %s', async (_, options) => {
    const { server, read } = await serverWith(options)
    await expect(read()).rejects.toMatchObject({ code: 'upstream' })
    await server.left()
  })

  test('times out for a silent server', async () => {
    const { server, host, read } = await serverWith({ isSilent: true })
    const before = host.clock.monotonicMs()
    await expect(advanceUntilDone(host, read())).rejects.toMatchObject({
      code: 'upstream_timeout',
      message: expect.stringContaining('5 s'),
    })
    expect(host.clock.monotonicMs() - before).toBeLessThan(TIMEOUT_MS + 1000)
    await server.left()
  })

  test('reads a server that never acknowledges, and lets the chip run on', async () => {
    const { server, host, read } = await serverWith({ neverAcks: true })
    expect(hex(await advanceUntilDone(host, read()))).toEqual([PATTERN])
    await server.left()
    expect(server.isRunning()).toBe(true)
  })

  test('ends at once when it is aborted, and lets the chip run on', async () => {
    const abort = new AbortController()
    const { server, read } = await serverWith({
      reply: (request, reply) => {
        if (request.startsWith('m')) abort.abort()
        return reply
      },
    })
    const reading = read([BLOCK, BLOCK, BLOCK], abort.signal)
    await expect(reading).rejects.toMatchObject({ code: 'aborted' })
    await server.left()
    await setImmediate()
    expect(server.isRunning()).toBe(true)
  })

  test('throws `unavailable` when the server closes or does not answer', async () => {
    const server = createServer((socket) => socket.once('data', () => socket.destroy()))
    const { address, close } = await listen(server)
    const host = testHost()
    const reader = new GdbReader(host, address, TIMEOUT_MS)
    const signal = new AbortController().signal
    await expect(reader.read([BLOCK], signal)).rejects.toMatchObject({ code: 'unavailable' })
    await close()
    await expect(reader.read([BLOCK], signal)).rejects.toMatchObject({
      code: 'unavailable',
      message: expect.stringContaining('ECONNREFUSED'),
    })
  })
})
