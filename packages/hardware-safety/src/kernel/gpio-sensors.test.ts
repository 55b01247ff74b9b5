import { fakeGpio } from '@sluice/hardware/testing/fake-gpio'
import { testClock } from '@sluice/testkit/clock'
import * as v from 'valibot'
import { describe, expect, test } from 'vitest'
import type { BodyEvent } from '../core/robot-event.ts'
import { robotToml } from '../robot-toml.ts'
import { EchoTimer } from './echo-timer.ts'
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
  const reported: BodyEvent[] = []
  for (const pin of BUMPS) gpio.drive(pin, 1)
  const opened = await openGpioSensors(
    config,
    clock,
    (event) => void reported.push(event),
    async () => gpio,
  )
  return { gpio, clock, reported, opened }
}

describe('openGpioSensors', () => {
  test('reports each edge of the emergency stop at once, even of a short press', async () => {
    const { gpio, reported } = await sensors()
    expect(reported).toContainEqual({ kind: 'estop', isPressed: false })
    gpio.drive(ESTOP, 1)
    expect(reported.at(-1)).toEqual({ kind: 'estop', isPressed: true })
    gpio.drive(ESTOP, 0)
    expect(reported.at(-1)).toEqual({ kind: 'estop', isPressed: false })
  })

  test('reports an emergency stop at the start, and one whose edge was missed', async () => {
    const { gpio, reported, opened } = await sensors({ safety: { estop_active: 'low' } })
    expect(reported).toContainEqual({ kind: 'estop', isPressed: true })
    gpio.drive(ESTOP, 1)
    reported.length = 0
    opened.poll()
    expect(reported).toContainEqual({ kind: 'estop', isPressed: false })
  })

  test('names the bump sensor', async () => {
    const { gpio, reported } = await sensors()
    gpio.drive(6, 0)
    expect(reported.at(-1)).toEqual({ kind: 'bump', sensor: 'the bump sensor on pin 6', isPressed: true })
  })

  test('reports lost lines as a fault', async () => {
    const { reported, opened } = await sensors()
    opened.close()
    opened.poll()
    expect(reported.at(-1)).toMatchObject({ kind: 'fault', what: expect.stringContaining('failed') })
  })

  test('releases all lines when another program holds one', async () => {
    const gpio = fakeGpio([{ path: CHIP, label: 'pinctrl-test', lines: 32 }])
    gpio.claim(ECHO, 'another program')
    const config = v.parse(robotToml, {
      drive: { backend: 'serial' },
      sensors: { ultrasonic_pins: [TRIGGER, ECHO] },
      safety: { estop_pin: ESTOP },
    })
    const opening = openGpioSensors(
      config,
      testClock(),
      () => undefined,
      async () => gpio,
    )
    await expect(opening).rejects.toMatchObject({ code: 'conflict' })
    expect(gpio.consumer(ESTOP)).toBeUndefined()
    expect(gpio.consumer(TRIGGER)).toBeUndefined()
  })

  test('finds a chip by its label', async () => {
    const { gpio } = await sensors({ sensors: { gpio_chip: 'pinctrl-test' } })
    expect(gpio.consumer(ESTOP)).toBe('sluice robot')
    await expect(sensors({ sensors: { gpio_chip: 'other' } })).rejects.toThrow(
      "There is no GPIO chip 'other'; this machine has: pinctrl-test (/dev/gpiochip0)",
    )
  })
})

describe('EchoTimer', () => {
  const NS_A_METRE = 5_827_505n
  const sensor = () => {
    const clock = testClock()
    const levels: number[] = []
    const readings: (readonly [number, number])[] = []
    const timer = new EchoTimer(
      clock,
      (level) => void levels.push(level),
      (...reading) => void readings.push(reading),
    )
    const echo = (ns: bigint, fromNs = BigInt(clock.monotonicMs()) * 1_000_000n + 1000n) => {
      timer.edge({ offset: ECHO, edge: 'rising', atNs: fromNs, sequence: 1 })
      timer.edge({ offset: ECHO, edge: 'falling', atNs: fromNs + ns, sequence: 2 })
    }
    return { clock, levels, readings, timer, echo }
  }

  test('turns the length of the echo into the distance at the time of the ping', async () => {
    const { clock, levels, readings, timer, echo } = sensor()
    await clock.advance(100)
    timer.ping()
    expect(levels).toEqual([1, 0])
    echo(2n * NS_A_METRE)
    expect(readings).toEqual([[expect.closeTo(2, 3), 100]])
  })

  test('ignores a late echo of an earlier ping', async () => {
    const { clock, readings, timer, echo } = sensor()
    timer.ping()
    await clock.advance(400)
    timer.ping()
    echo(2n * NS_A_METRE, 1_000_000n)
    expect(readings).toEqual([])
    echo(NS_A_METRE)
    expect(readings).toEqual([[expect.closeTo(1, 3), 400]])
  })

  test('reports a long echo as nothing in range', () => {
    const { readings, timer, echo } = sensor()
    timer.ping()
    echo(38_000_000n)
    expect(readings).toEqual([[Number.POSITIVE_INFINITY, 0]])
  })

  test('waits until the last echo has died away, and ignores half an echo', async () => {
    const { clock, levels, readings, timer } = sensor()
    timer.ping()
    timer.edge({ offset: ECHO, edge: 'rising', atNs: 1n, sequence: 1 })
    await clock.advance(59)
    timer.ping()
    expect(levels).toHaveLength(2)
    await clock.advance(1)
    timer.ping()
    expect(levels).toHaveLength(4)
    timer.edge({ offset: ECHO, edge: 'falling', atNs: 9_000_000n, sequence: 2 })
    expect(readings).toEqual([])
  })
})
