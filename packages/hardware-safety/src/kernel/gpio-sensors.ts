/**
 * The emergency stop, the bump sensors and the ultrasonic sensor on GPIO lines. Edges are reported at once, levels at each
 * poll.
 */
import { type EdgeEvent, type Gpio, type GpioLines, openGpio } from '@sluice/hardware'
import { type Clock, errorText } from '@sluice/sdk'
import { degrees, findGpioChip, ULTRASONIC, ULTRASONIC_CONE } from '../robot-config.ts'
import type { RobotConfig } from '../robot-toml.ts'
import type { Report } from './body.ts'
import { EchoTimer } from './echo-timer.ts'

export interface GpioSensors {
  /** Must not throw. */
  poll(): void
  /** Idempotent. */
  close(): void
}

/** Debounces the bump sensors. The emergency stop is not debounced, because that would delay it. */
const DEBOUNCE_US = 2000
const CONSUMER = 'sluice robot'

/** Throws when a line is not available, and then holds none. */
export async function openGpioSensors(config: RobotConfig, clock: Clock, report: Report, open = openGpio): Promise<GpioSensors> {
  const { estop_pin, estop_active, bump_sensor_pins, bump_active } = config.safety
  const { ultrasonic_pins, ultrasonic_bearing, gpio_chip } = config.sensors
  const opened: GpioSensors[] = []
  const all: GpioSensors = {
    poll: () => opened.forEach((each) => void each.poll()),
    close: () => opened.forEach((each) => void each.close()),
  }
  if (estop_pin === undefined && bump_sensor_pins.length === 0 && !ultrasonic_pins) return all
  const gpio = await open()
  const on = { gpio, chip: await findGpioChip(gpio, gpio_chip), report }
  try {
    if (estop_pin !== undefined) {
      const onLevel = (_: number, isPressed: boolean) => report({ kind: 'estop', isPressed })
      opened.push(await followLevels(on, { pins: [estop_pin], active: estop_active, onLevel }))
    }
    if (bump_sensor_pins.length > 0) {
      const onLevel = (pin: number, isPressed: boolean) => report({ kind: 'bump', sensor: `the bump sensor on pin ${pin}`, isPressed })
      opened.push(await followLevels(on, { pins: bump_sensor_pins, active: bump_active, debounceUs: DEBOUNCE_US, onLevel }))
    }
    if (ultrasonic_pins) opened.push(await followEchoes(on, ultrasonic_pins, ultrasonic_bearing * degrees, clock))
  } catch (error) {
    all.close()
    throw error
  }
  return all
}

interface OnChip {
  readonly gpio: Gpio
  readonly chip: string
  readonly report: Report
}

interface Levels {
  readonly pins: readonly number[]
  readonly active: 'high' | 'low'
  readonly debounceUs?: number
  onLevel(pin: number, isActive: boolean): void
}

/** Reports the levels of the lines at each edge and at each poll. */
async function followLevels({ gpio, chip, report }: OnChip, { pins, active, debounceUs, onLevel }: Levels): Promise<GpioSensors> {
  let lines: GpioLines | undefined
  const poll = reportingFaults(report, 'a GPIO line', () => {
    for (const [index, value] of (lines?.read() ?? []).entries()) onLevel(pins[index] ?? -1, value === (active === 'high' ? 1 : 0))
  })
  const onEvent = ({ offset, edge }: EdgeEvent) => {
    // Reports the edge itself: a press and release between two polls is still a press.
    onLevel(offset, edge === (active === 'high' ? 'rising' : 'falling'))
    poll()
  }
  const watch = { edge: 'both' as const, ...(debounceUs !== undefined && { debounceUs }), onEvent, onLost: reportsLostChip(report, chip) }
  // With a pull-up and a switch that opens when pressed, a broken wire reads as pressed.
  lines = await gpio.request(chip, { offsets: pins, direction: 'input', consumer: CONSUMER, bias: 'pull-up', watch })
  poll()
  return { poll, close: () => lines?.close() }
}

async function followEchoes(
  { gpio, chip, report }: OnChip,
  [triggerPin, echoPin]: readonly [trigger: number, echo: number],
  bearing: number,
  clock: Clock,
): Promise<GpioSensors> {
  const trigger = await gpio.request(chip, { offsets: [triggerPin], direction: 'output', consumer: CONSUMER })
  const timer = new EchoTimer(
    clock,
    (level) => trigger.write([level]),
    (distance, takenMs) => report({ kind: 'range', sensor: ULTRASONIC, takenMs, beams: [{ bearing, spread: ULTRASONIC_CONE, distance }] }),
  )
  try {
    const watch = { edge: 'both' as const, onEvent: (event: EdgeEvent) => timer.edge(event), onLost: reportsLostChip(report, chip) }
    const echo = await gpio.request(chip, { offsets: [echoPin], direction: 'input', consumer: CONSUMER, watch })
    const close = () => {
      trigger.close()
      echo.close()
    }
    return { poll: reportingFaults(report, 'the ultrasonic sensor', () => timer.ping()), close }
  } catch (error) {
    trigger.close()
    throw error
  }
}

const reportsLostChip = (report: Report, chip: string) => () => report({ kind: 'fault', what: `the GPIO chip ${chip} is gone` })

/** Returns `work`, except that an error it throws is reported as a fault of `part`. */
const reportingFaults = (report: Report, part: string, work: () => void) => () => {
  try {
    work()
  } catch (error) {
    report({ kind: 'fault', what: `${part} failed: ${errorText(error)}` })
  }
}
