import { systemClock } from '@sluice/kit'
import { testClock } from '@sluice/testkit/clock'
import { findSocat, startSerialLine } from '@sluice/testkit/serial-line'
import { describe, expect, test } from 'vitest'
import type { NativePort } from '../native.ts'
import type { Noticed } from './body.ts'
import { openSerialDrive } from './serial-drive.ts'

type Callback = (error: Error | null) => void

/** A port whose writes end when the test says so. */
function fakePort({ openError = null }: { readonly openError?: Error | null } = {}) {
  const written: string[] = []
  const pending: Callback[] = []
  const listeners: Record<string, Callback> = {}
  let isOpen = false
  const port: NativePort = {
    open(callback) {
      isOpen = openError === null
      callback(openError)
    },
    write(text, callback) {
      written.push(text)
      pending.push(callback)
      return true
    },
    close(callback) {
      isOpen = false
      listeners.close?.(null)
      callback(null)
    },
    resume: () => undefined,
    on(event, callback) {
      listeners[event] = callback
    },
    get isOpen() {
      return isOpen
    },
  }
  return { port, written, pending, listeners }
}

async function drive(fake = fakePort()) {
  const clock = testClock()
  const heard: Noticed[] = []
  const opened = await openSerialDrive({
    path: '/dev/ttyACM0',
    baud: 115_200,
    clock,
    hear: (noticed) => void heard.push(noticed),
    load: async () => () => fake.port,
    check: async () => undefined,
  })
  return { ...fake, clock, heard, drive: opened }
}

const FORWARD = { x: 0.25, y: 0, turn: -0.5 }

test('a velocity is one line, and so is a halt, whatever stood before it', async () => {
  const { drive: motors, written, pending } = await drive()
  motors.run(FORWARD, 200)
  pending.shift()?.(null)
  await Promise.resolve()
  const halted = motors.halt()
  pending.shift()?.(null)
  await halted
  expect(written).toEqual(['M 0.250 0.000 -0.500 200\n', '\nM 0 0 0 0\n'])
})

test('a velocity that would come late is left out, a halt never', async () => {
  const { drive: motors, written, pending, clock } = await drive()
  motors.run(FORWARD, 200)
  motors.run(FORWARD, 200)
  void motors.halt()
  expect(written).toHaveLength(2)
  expect(written.at(-1)).toContain('M 0 0 0 0')
  for (const done of pending.splice(0)) done(null)
  await clock.advance(0)
  expect(written).toHaveLength(2)
})

test.each([
  [50, ['M 0.100 0.000 0.000 150\n']],
  [210, []],
])('one that is asked for while another is written follows it after %i ms, for what is left of its time', async (afterMs, lines) => {
  const { drive: motors, written, pending, clock } = await drive()
  motors.run(FORWARD, 200)
  motors.run({ x: 0.2, y: 0, turn: 0 }, 200)
  motors.run({ x: 0.1, y: 0, turn: 0 }, 200)
  await clock.advance(afterMs)
  pending.shift()?.(null)
  await clock.advance(0)
  expect(written.slice(1)).toEqual(lines)
})

test.each<[string, (fake: Awaited<ReturnType<typeof drive>>) => void | Promise<void>, string]>([
  ['that fails', ({ listeners }) => listeners.error?.(new Error('input/output error')), 'failed: input/output error'],
  ['that is unplugged', ({ listeners }) => listeners.close?.(null), 'is gone'],
  ['that takes no more', ({ pending }) => pending.shift()?.(new Error('gone')), 'takes no commands'],
  ['that hangs', ({ clock }) => clock.advance(300), 'does not take commands'],
])('a drive %s is a fault', async (_, happen, why) => {
  const all = await drive()
  all.drive.run(FORWARD, 200)
  await happen(all)
  await all.clock.advance(0)
  expect(all.heard).toEqual([{ kind: 'fault', what: `the drive on /dev/ttyACM0 ${why}` }])
})

test('closing is no fault, and may be done twice', async () => {
  const { drive: motors, heard } = await drive()
  await motors.close()
  await motors.close()
  expect(heard).toEqual([])
})

test('a port that cannot be opened is told with its reason, and one that is no port is never opened', async () => {
  await expect(drive(fakePort({ openError: new Error('Permission denied') }))).rejects.toMatchObject({
    code: 'unavailable',
    message: '/dev/ttyACM0 cannot be opened: Permission denied',
  })
  const load = async () => {
    throw new Error('it was loaded')
  }
  const options = { path: '/dev/../etc/passwd', baud: 9600, clock: testClock(), hear: () => undefined, load }
  await expect(openSerialDrive(options)).rejects.toMatchObject({ code: 'invalid_request' })
})

const socat = await findSocat()
const why = 'missing' in socat ? `: skipped, ${socat.missing}` : ''

describe.skipIf('missing' in socat)(`a real serial line${why}`, () => {
  test('what the motors are told arrives, and a cable that comes off is a fault', async () => {
    if ('missing' in socat) return
    const line = await startSerialLine(socat)
    let arrived = ''
    line.onData((bytes) => {
      arrived += Buffer.from(bytes).toString()
    })
    const gone = Promise.withResolvers<Noticed>()
    const motors = await openSerialDrive({
      path: line.path,
      baud: 115_200,
      clock: systemClock,
      hear: gone.resolve,
      check: async () => undefined,
    })
    motors.run(FORWARD, 200)
    await motors.halt()
    await expect.poll(() => arrived).toBe('M 0.250 0.000 -0.500 200\n\nM 0 0 0 0\n')
    await line.unplug()
    expect(await gone.promise).toMatchObject({ kind: 'fault' })
    await motors.close()
  })
})
