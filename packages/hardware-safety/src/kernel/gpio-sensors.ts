/** Emergency stop, bump sensors and an ultrasonic sensor on GPIO lines: edges as they come, levels as often as it is polled. */
import { type EdgeEvent, type Gpio, type GpioLines, openGpio } from '@sluice/hardware'
import type { Clock } from '@sluice/sdk'
import { chipNamed } from '../chip-named.ts'
import { degrees, ULTRASONIC, ULTRASONIC_CONE } from '../robot-config.ts'
import type { RobotConfig } from '../robot-toml.ts'
import type { Hear } from './body.ts'
import { createEchoes } from './echoes.ts'
import { faultOf } from './kernel.ts'

export interface GpioSensors {
  /** Must not throw. */
  poll(): void
  /** Idempotent. */
  close(): void
}

export interface GpioSensorDeps {
  readonly config: RobotConfig
  readonly clock: Clock
  readonly hear: Hear
  /** Default: those of this machine. */
  readonly open?: () => Promise<Gpio>
}

/** Of a bump sensor; an emergency stop is never waited for. */
const DEBOUNCE_US = 2000
const CONSUMER = 'sluice robot'

/** Throws where a line cannot be had; then none is held. */
export async function openGpioSensors({ config, clock, hear, open = openGpio }: GpioSensorDeps): Promise<GpioSensors> {
  const { estop_pin, estop_active, bump_sensor_pins, bump_active } = config.safety
  const { ultrasonic_pins, ultrasonic_bearing, gpio_chip } = config.sensors
  const opened: GpioSensors[] = []
  const all: GpioSensors = {
    poll: () => opened.forEach((each) => void each.poll()),
    close: () => opened.forEach((each) => void each.close()),
  }
  if (estop_pin === undefined && bump_sensor_pins.length === 0 && !ultrasonic_pins) return all
  const gpio = await open()
  const on = { gpio, chip: await chipNamed(gpio, gpio_chip), hear }
  try {
    if (estop_pin !== undefined)
      opened.push(
        await followLevels(on, { pins: [estop_pin], active: estop_active, level: (_, isPressed) => hear({ kind: 'estop', isPressed }) }),
      )
    if (bump_sensor_pins.length > 0)
      opened.push(
        await followLevels(on, {
          pins: bump_sensor_pins,
          active: bump_active,
          debounceUs: DEBOUNCE_US,
          level: (pin, isPressed) => hear({ kind: 'bump', sensor: `the bump sensor on pin ${pin}`, isPressed }),
        }),
      )
    if (ultrasonic_pins) opened.push(await followEchoes(on, { pins: ultrasonic_pins, bearing: ultrasonic_bearing * degrees, clock }))
  } catch (error) {
    all.close()
    throw error
  }
  return all
}

interface OnChip {
  readonly gpio: Gpio
  readonly chip: string
  readonly hear: Hear
}

interface Levels {
  readonly pins: readonly number[]
  readonly active: 'high' | 'low'
  readonly debounceUs?: number
  level(pin: number, isActive: boolean): void
}

/** Tells the levels of lines, at each edge and each poll. */
async function followLevels({ gpio, chip, hear }: OnChip, { pins, active, debounceUs, level }: Levels): Promise<GpioSensors> {
  let lines: GpioLines | undefined
  const poll = attempting(hear, 'a GPIO line', () => {
    for (const [index, value] of (lines?.read() ?? []).entries()) level(pins[index] ?? -1, value === (active === 'high' ? 1 : 0))
  })
  const onEvent = ({ offset, edge }: EdgeEvent) => {
    // By itself: what was pressed and let go between two looks was pressed
    level(offset, edge === (active === 'high' ? 'rising' : 'falling'))
    poll()
  }
  const watch = { edge: 'both' as const, ...(debounceUs !== undefined && { debounceUs }), onEvent, onLost: lost(hear, chip) }
  // With a switch that opens towards ground, a broken wire then reads as pressed
  lines = await gpio.request(chip, { offsets: pins, direction: 'input', consumer: CONSUMER, bias: 'pull-up', watch })
  poll()
  return { poll, close: () => lines?.close() }
}

async function followEchoes(
  { gpio, chip, hear }: OnChip,
  { pins, bearing, clock }: { readonly pins: readonly [trigger: number, echo: number]; readonly bearing: number; readonly clock: Clock },
): Promise<GpioSensors> {
  const [triggerPin, echoPin] = pins
  const trigger = await gpio.request(chip, { offsets: [triggerPin], direction: 'output', consumer: CONSUMER })
  const echoes = createEchoes({
    clock,
    trigger: (level) => trigger.write([level]),
    heard: (distance, takenMs) =>
      hear({ kind: 'range', sensor: ULTRASONIC, takenMs, beams: [{ bearing, spread: ULTRASONIC_CONE, distance }] }),
  })
  try {
    const watch = { edge: 'both' as const, onEvent: echoes.edge, onLost: lost(hear, chip) }
    const echo = await gpio.request(chip, { offsets: [echoPin], direction: 'input', consumer: CONSUMER, watch })
    const close = () => {
      trigger.close()
      echo.close()
    }
    return { poll: attempting(hear, 'the ultrasonic sensor', echoes.ping), close }
  } catch (error) {
    trigger.close()
    throw error
  }
}

const lost = (hear: Hear, chip: string) => () => hear({ kind: 'fault', what: `the GPIO chip ${chip} is gone` })

/** The same, but what it throws is heard. */
const attempting = (hear: Hear, part: string, work: () => void) => () => {
  try {
    work()
  } catch (error) {
    hear(faultOf(part, error))
  }
}
