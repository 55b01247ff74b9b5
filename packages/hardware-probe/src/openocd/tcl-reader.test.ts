import type { Socket } from 'node:net'
import { setTimeout } from 'node:timers/promises'
import { testHost } from '@sluice/testkit/host'
import { afterEach, describe, expect, test } from 'vitest'
import { F401_MEMORY } from '../testing/chip-memory.ts'
import { startFakeTclServer } from '../testing/fake-openocd.ts'
import { OpenOcdTclReader } from './tcl-reader.ts'

const BLOCKS = [
  { address: 0x20000004, length: 8, width: 4 },
  { address: 0x1fff7a22, length: 2, width: 2 },
  { address: 0x40000000, length: 4, width: 4 },
] as const
const open: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const close of open.splice(0)) await close()
})

async function readerWith(answer?: (text: string, socket: Socket) => string | undefined) {
  const server = await startFakeTclServer(F401_MEMORY, answer)
  open.push(server.close)
  const host = testHost()
  return { host, reader: new OpenOcdTclReader(host, server.address, 5000) }
}
const { signal } = new AbortController()

describe('OpenOcdTclReader', () => {
  test('reads words in byte order and skips a refused block', async () => {
    const { reader } = await readerWith()
    const readings = await reader.read(BLOCKS, signal)
    expect(readings.map((bytes) => bytes && Buffer.from(bytes).toString('hex'))).toEqual(['0405060708090a0b', '0002', undefined])
  })

  test.each<[string, (text: string, socket: Socket) => string | undefined, object]>([
    [
      'is too old',
      () => 'sluice 0 1 invalid command name "read_memory"',
      { code: 'unavailable', message: expect.stringContaining('0.12') },
    ],
    ['is not an OpenOCD', () => 'HTTP/1.1 400 Bad Request', { code: 'upstream' }],
    ['returns too few words', (text) => text.replace(/ 0x\w+$/, ''), { code: 'upstream' }],
    ['returns invalid words', (text) => text.replace(/0x\w+$/, '0x1ffffffff'), { code: 'upstream' }],
    ['answers without an end', (_, socket) => void socket.write('x'.repeat(100_000)), { code: 'upstream' }],
    ['closes the connection', (_, socket) => void socket.destroy(), { code: 'unavailable' }],
  ])('throws for a server that %s', async (_, answer, error) => {
    const { reader } = await readerWith(answer)
    await expect(reader.read(BLOCKS, signal)).rejects.toMatchObject(error)
  })

  test('times out for a silent server', async () => {
    const { host, reader } = await readerWith(() => undefined)
    const reading = expect(reader.read(BLOCKS, signal)).rejects.toMatchObject({ code: 'upstream_timeout' })
    for (let step = 0; step < 60; step++) {
      await host.advance(100)
      await setTimeout(1)
    }
    await reading
  })

  test('ends at once when it is aborted', async () => {
    const abort = new AbortController()
    const { reader } = await readerWith(() => void abort.abort())
    await expect(reader.read(BLOCKS, abort.signal)).rejects.toMatchObject({ code: 'aborted' })
    await expect(reader.read(BLOCKS, abort.signal)).rejects.toMatchObject({ code: 'aborted' })
  })
})
