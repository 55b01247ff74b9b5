import { fakeGpio } from '@sluice/hardware/testing/fake-gpio'
import { testClock } from '@sluice/testkit/clock'
import * as v from 'valibot'
import { describe, expect, test } from 'vitest'
import { robotToml } from '../robot-toml.ts'
import type { Noticed } from './body.ts'
import { createEchoes } from './echoes.ts'
import { openGpioSensors } from './gpio-sensors.ts'

const CHIP = '/dev/gpiochip0'
const ESTOP = 4
const BUMPS = [5, 6] as const
const [TRIGGER, ECHO] = [23, 24]

async function sensors({ safety = {}, sensors: more = {} }: { readonly safety?: object; readonly sensors?: object } = {}) {
  const gpio = fakeGpio([{ path: CHIP, label: 'pinctrl-test', lines: 32 }])
  const config = v.parse(robotToml, {
    drive: { backend: 'serial' },
    sensors: { ultrasonic_pins: [TRIGGER, ECHO], ...more },
    safety: { estop_pin: ESTOP, bump_sensor_pins: BUMPS, ...safety },
  })
  const clock = testClock()
  const heard: Noticed[] = []
  for (const pin of BUMPS) gpio.drive(pin, 1)
  const opened = await openGpioSensors({ config, clock, hear: (noticed) => void heard.push(noticed), open: async () => gpio })
  return { gpio, clock, heard, opened }
}

test('an edge of the emergency stop is heard at once, and so is that of a short press', async () => {
  const { gpio, heard } = await sensors()
  expect(heard).toContainEqual({ kind: 'estop', isPressed: false })
  gpio.drive(ESTOP, 1)
  expect(heard.at(-1)).toEqual({ kind: 'estop', isPressed: true })
  gpio.drive(ESTOP, 0)
  expect(heard.at(-1)).toEqual({ kind: 'estop', isPressed: false })
})

test('an emergency stop that is pressed from the beginning is heard, as is one whose edge was missed', async () => {
  const { gpio, heard, opened } = await sensors({ safety: { estop_active: 'low' } })
  expect(heard).toContainEqual({ kind: 'estop', isPressed: true })
  gpio.drive(ESTOP, 1)
  heard.length = 0
  opened.poll()
  expect(heard).toContainEqual({ kind: 'estop', isPressed: false })
})

test('a bump sensor says which one it is', async () => {
  const { gpio, heard } = await sensors()
  gpio.drive(6, 0)
  expect(heard.at(-1)).toEqual({ kind: 'bump', sensor: 'the bump sensor on pin 6', isPressed: true })
})

test('lines that are lost, or do not answer, are a fault', async () => {
  const { heard, opened } = await sensors()
  opened.close()
  opened.poll()
  expect(heard.at(-1)).toMatchObject({ kind: 'fault', what: expect.stringContaining('failed') })
})

test('a line that another holds is refused, and the others are let go', async () => {
  const gpio = fakeGpio([{ path: CHIP, label: 'pinctrl-test', lines: 32 }])
  gpio.claim(ECHO, 'somebody')
  const config = v.parse(robotToml, {
    drive: { backend: 'serial' },
    sensors: { ultrasonic_pins: [TRIGGER, ECHO] },
    safety: { estop_pin: ESTOP },
  })
  const opening = openGpioSensors({ config, clock: testClock(), hear: () => undefined, open: async () => gpio })
  await expect(opening).rejects.toMatchObject({ code: 'conflict' })
  expect(gpio.consumer(ESTOP)).toBeUndefined()
  expect(gpio.consumer(TRIGGER)).toBeUndefined()
})

test('a chip may be named by its label', async () => {
  const { gpio } = await sensors({ sensors: { gpio_chip: 'pinctrl-test' } })
  expect(gpio.consumer(ESTOP)).toBe('sluice robot')
  await expect(sensors({ sensors: { gpio_chip: 'other' } })).rejects.toThrow(
    "there is no GPIO chip 'other'; there is: pinctrl-test (/dev/gpiochip0)",
  )
})

describe('an ultrasonic sensor', () => {
  const NS_A_METRE = 5_827_505n
  const sensor = () => {
    const clock = testClock()
    const levels: number[] = []
    const heard: (readonly [number, number])[] = []
    const echoes = createEchoes({ clock, trigger: (level) => void levels.push(level), heard: (...reading) => void heard.push(reading) })
    const echo = (ns: bigint, fromNs = BigInt(clock.monotonicMs()) * 1_000_000n + 1000n) => {
      echoes.edge({ offset: ECHO, edge: 'rising', atNs: fromNs, sequence: 1 })
      echoes.edge({ offset: ECHO, edge: 'falling', atNs: fromNs + ns, sequence: 2 })
    }
    return { clock, levels, heard, echoes, echo }
  }

  test('the length of the echo is the distance, of the time of the sound', async () => {
    const { clock, levels, heard, echoes, echo } = sensor()
    await clock.advance(100)
    echoes.ping()
    expect(levels).toEqual([1, 0])
    echo(2n * NS_A_METRE)
    expect(heard).toEqual([[expect.closeTo(2, 3), 100]])
  })

  test('an echo of an earlier sound, told late, does not pass for one of the last', async () => {
    const { clock, heard, echoes, echo } = sensor()
    echoes.ping()
    await clock.advance(400)
    echoes.ping()
    echo(2n * NS_A_METRE, 1_000_000n)
    expect(heard).toEqual([])
    echo(NS_A_METRE)
    expect(heard).toEqual([[expect.closeTo(1, 3), 400]])
  })

  test('an echo beyond its range is nothing in range', () => {
    const { heard, echoes, echo } = sensor()
    echoes.ping()
    echo(38_000_000n)
    expect(heard).toEqual([[Number.POSITIVE_INFINITY, 0]])
  })

  test('it is not asked again before the last echo has died away, and half an echo is none', async () => {
    const { clock, levels, heard, echoes } = sensor()
    echoes.ping()
    echoes.edge({ offset: ECHO, edge: 'rising', atNs: 1n, sequence: 1 })
    await clock.advance(59)
    echoes.ping()
    expect(levels).toHaveLength(2)
    await clock.advance(1)
    echoes.ping()
    expect(levels).toHaveLength(4)
    echoes.edge({ offset: ECHO, edge: 'falling', atNs: 9_000_000n, sequence: 2 })
    expect(heard).toEqual([])
  })
})
