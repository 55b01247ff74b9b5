import { testClock } from '@sluice/testkit/clock'
import { describe, expect, test } from 'vitest'
import type { BodyEvent } from '../core/robot-event.ts'
import type { NativePort } from '../native.ts'
import { SerialDrive } from './serial-drive.ts'

type Callback = (error: Error | null) => void

/** A port whose writes complete when the test calls their callbacks. */
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
  const reported: BodyEvent[] = []
  const access = { load: async () => () => fake.port, check: async () => undefined }
  const opened = await SerialDrive.open('/dev/ttyACM0', 115_200, clock, (event) => void reported.push(event), access)
  return { ...fake, clock, reported, drive: opened }
}

const FORWARD = { x: 0.25, y: 0, turn: -0.5 }

describe('SerialDrive', () => {
  test('writes a velocity and a halt as one line each', async () => {
    const { drive: motors, written, pending } = await drive()
    motors.run(FORWARD, 200)
    pending.shift()?.(null)
    await Promise.resolve()
    const halted = motors.halt()
    pending.shift()?.(null)
    await halted
    expect(written).toEqual(['M 0.250 0.000 -0.500 200\n', '\nM 0 0 0 0\n'])
  })

  test('a halt replaces the waiting velocity', async () => {
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
  ])('a velocity that waited %i ms for a write runs for the rest of its time', async (afterMs, lines) => {
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
    ['that refuses a command', ({ pending }) => pending.shift()?.(new Error('gone')), 'takes no commands'],
    ['that hangs', ({ clock }) => clock.advance(300), 'took no command for 250 ms'],
  ])('a drive %s is reported as a fault', async (_, happen, why) => {
    const all = await drive()
    all.drive.run(FORWARD, 200)
    await happen(all)
    await all.clock.advance(0)
    expect(all.reported).toEqual([{ kind: 'fault', what: `the drive on /dev/ttyACM0 ${why}` }])
  })

  test('closing twice reports no fault', async () => {
    const { drive: motors, reported } = await drive()
    await motors.close()
    await motors.close()
    expect(reported).toEqual([])
  })

  test('rejects with the cause when the port cannot be opened', async () => {
    await expect(drive(fakePort({ openError: new Error('Permission denied') }))).rejects.toMatchObject({
      code: 'unavailable',
      message: '/dev/ttyACM0 cannot be opened: Permission denied',
    })
    const load = async () => {
      throw new Error('serialport was loaded')
    }
    const opening = SerialDrive.open('/dev/../etc/passwd', 9600, testClock(), () => undefined, { load })
    await expect(opening).rejects.toMatchObject({ code: 'invalid_request' })
  })
})
