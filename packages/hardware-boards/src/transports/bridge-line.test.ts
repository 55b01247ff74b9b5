import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { testClock } from '@sluice/testkit/clock'
import { afterEach, describe, expect, test } from 'vitest'
import { BridgeLine } from './bridge-line.ts'

const never = new AbortController().signal
const code = (expected: string) => expect.objectContaining({ code: expected })
const closers: (() => void)[] = []
afterEach(() => {
  for (const close of closers.splice(0)) close()
})

async function bridge(reply: (line: string, socket: Socket) => void) {
  const server = createServer((socket) => {
    closers.push(() => socket.destroy())
    socket.on('error', () => undefined)
    socket.on('data', (bytes) => reply(bytes.toString().trim(), socket))
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  closers.push(() => server.close())
  const clock = testClock()
  const { port } = server.address() as AddressInfo
  return { line: new BridgeLine('board_b0', `127.0.0.1:${port}`, clock), clock, server }
}

describe('BridgeLine', () => {
  test('reads and writes a pin by one line each', async () => {
    const asked: string[] = []
    const { line } = await bridge((text, socket) => {
      asked.push(text)
      socket.end(text.startsWith('gpio_read') ? '1\n' : 'ok\n')
    })
    await expect(line.read(13, never)).resolves.toBe(1)
    await line.write(13, 0, never)
    expect(asked).toEqual(['gpio_read 13', 'gpio_write 13 0'])
  })

  test.each([
    ['error: no such pin', 'board_b0 refuses: no such pin', 'upstream'],
    ['42', 'neither 0 nor 1', 'upstream'],
    ['x'.repeat(100_000), 'does not end', 'unavailable'],
  ])('reports the reply %.20s as an error', async (reply, words, expected) => {
    const { line } = await bridge((_text, socket) => socket.end(reply))
    const error = await line.read(13, never).catch((thrown: unknown) => thrown)
    expect(error).toEqual(code(expected))
    expect((error as Error).message).toContain(words)
  })

  test('fails after 3 s without a reply, and at once when the connection closes', async () => {
    const asked = Promise.withResolvers<void>()
    const { line, clock } = await bridge(() => asked.resolve())
    const reading = expect(line.read(13, never)).rejects.toEqual(code('upstream_timeout'))
    await asked.promise
    await clock.advance(3000)
    await reading
    const { line: closing } = await bridge((_text, socket) => socket.destroy())
    await expect(closing.read(13, never)).rejects.toEqual(code('unavailable'))
  })

  test('fails when nothing listens, and on an abort', async () => {
    const { line, server } = await bridge(() => undefined)
    const abort = new AbortController()
    const waiting = expect(line.read(13, abort.signal)).rejects.toEqual(code('aborted'))
    setImmediate(() => abort.abort())
    await waiting
    for (const close of closers.splice(0)) close()
    await new Promise((resolve) => server.close(resolve))
    await expect(line.read(13, never)).rejects.toEqual(code('unavailable'))
  })
})
