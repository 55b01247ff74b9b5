import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { systemClock } from '@sluice/kit'
import { findSocat } from '@sluice/qa/serial-line'
import { testHost } from '@sluice/testkit/host'
import * as v from 'valibot'
import { afterEach, describe, expect, test } from 'vitest'
import { peripheralsSection } from '../config.ts'
import { Registry } from '../registry/registry.ts'
import type { FakeBoardOptions, Fault } from '../testing/fake-board.ts'
import { type PtyBoard, ptyBoard } from '../testing/pty-board.ts'
import { openSerialPort } from './serial-port.ts'

const never = new AbortController().signal
const socat = await findSocat()
const why = 'missing' in socat ? `: skipped, ${socat.missing}` : ''
const code = (expected: string) => expect.objectContaining({ code: expected })

/** The bytes of the heap that are in use, without garbage of other tests. */
const heapBytes = (): number => {
  setFlagsFromString('--expose-gc')
  runInNewContext('gc')()
  return process.memoryUsage().heapUsed
}

const boards: PtyBoard[] = []
const registries: Registry[] = []
afterEach(async () => {
  for (const registry of registries.splice(0)) await registry.close()
  for (const { line } of boards.splice(0)) await line.unplug()
})

async function pty(options?: FakeBoardOptions) {
  if ('missing' in socat) throw new Error(socat.missing)
  const made = await ptyBoard(socat, options)
  boards.push(made)
  const { path } = made.line
  const usb = { vendor: '2341', product: '0043', serialNumber: '757', manufacturer: null }
  const registry = new Registry({ ...testHost(), clock: systemClock }, v.parse(peripheralsSection.schema, {}), {
    scan: async () => ({ ports: [{ path, usb, location: '1-1' }], usb: [] }),
    check: async () => undefined,
  })
  registries.push(registry)
  await registry.discover(never)
  return { ...made, registry, line: registry.line('board_b0'), path }
}

describe.skipIf('missing' in socat)(`a board behind a real serial port${why}`, () => {
  test('is read and written', async () => {
    const { line, board } = await pty()
    await line.write(4, 1, never)
    await expect(line.read(4, never)).resolves.toBe(1)
    await expect(line.capabilities(never)).resolves.toEqual({ gpio: [2, 3, 4, 5, 12, 13], led: 13, board: 'board_b', firmware: 'fake 1' })
    expect(board.requests.map(({ command }) => command)).toEqual(['gpio_write', 'gpio_read'])
  })

  test.each(['noise', 'stray', 'echo'] satisfies Fault[])('is understood through %s', async (fault) => {
    const { line, board } = await pty()
    board.pins.set(4, 1)
    board.next(fault)
    await expect(line.read(4, never)).resolves.toBe(1)
  })

  test('is asked again after half a reply', async () => {
    const { line, board } = await pty()
    await line.read(5, never)
    board.pins.set(4, 1)
    board.next('half')
    await expect(line.read(4, never)).resolves.toBe(1)
    expect(board.requests).toHaveLength(3)
  })

  test('is reported as unavailable when unplugged in the middle of a frame', async () => {
    const { line, board } = await pty()
    await line.read(4, never)
    board.next('unplug')
    await expect(line.read(4, never)).rejects.toEqual(code('unavailable'))
  })

  test('may send an endless line without filling the memory', async () => {
    const { line, board } = await pty()
    await line.read(4, never)
    const noise = Buffer.alloc(1_048_576, 'x')
    const before = heapBytes()
    for (let mebibyte = 0; mebibyte < 16; mebibyte++) {
      board.send(noise)
      await systemClock.sleep(10)
    }
    board.send('\n')
    // On a busy machine the noise takes longer to arrive than a board may take to answer.
    await expect.poll(() => line.read(4, never).catch(() => undefined), { timeout: 50_000 }).toBe(0)
    expect(heapBytes() - before).toBeLessThan(16 * 1_048_576)
  })

  test('can be opened again, and needs no modem lines', async () => {
    const { registry, line, path } = await pty()
    await line.read(4, never)
    const bytes = await registry.withPort('board_b0', never, async (port) => {
      await port.signals({ dtr: false })
      const got = Promise.withResolvers<string>()
      port.onData((data) => got.resolve(Buffer.from(data).toString()))
      await port.write(Buffer.from('{"id":"1","cmd":"ping","args":{}}\n'))
      return got.promise
    })
    expect(bytes).toContain('pong')
    await expect(line.read(4, never)).resolves.toBe(0)
    await expect(openSerialPort(path, 9600, systemClock, never)).rejects.toThrow('is in use by another program')
  })
})
