/** The Microchip MCP2221 and MCP2221A: I2C and four GPIO lines over USB HID. */
import { AppError, type Clock } from '@sluice/sdk'
import type { Adapter, Gpio, GpioState } from './adapter.ts'
import { garbled } from './bus-error.ts'
import { keptOpen } from './kept-open.ts'
import { type Exchange, exchangeWith, MCP2221 } from './mcp2221-exchange.ts'
import { read, setSpeed, write } from './mcp2221-i2c.ts'
import {
  COMMAND,
  GPIO_LINES,
  GPIO_MASK,
  getGpioReport,
  getSettingsReport,
  gpioLine,
  I2C_SPEED_RANGE,
  pinsToGpioReport,
  setGpioReport,
} from './mcp2221-report.ts'
import type { HidPort } from './native.ts'

export interface Mcp2221Options {
  readonly clock: Pick<Clock, 'sleep'>
  readonly i2cSpeedHz: number
  /** Rejects with the error to show. */
  open(): Promise<HidPort>
}

export function mcp2221({ clock, i2cSpeedHz, open }: Mcp2221Options): Adapter {
  const device = keptOpen(clock, async () => {
    const port = await open()
    const exchange = exchangeWith(port)
    try {
      await setSpeed(exchange, i2cSpeedHz)
    } catch (error) {
      await port.close().catch(() => undefined)
      throw error
    }
    return { exchange, close: () => port.close() }
  })

  return {
    name: MCP2221,
    abilities: { i2cSpeedHz: I2C_SPEED_RANGE, spiModes: [], pullUps: false, volts: [] },
    i2c: {
      read: (address, length, register) =>
        device.use(({ exchange }) => read(exchange, address, { length, ...(register !== undefined && { register }) })),
      write: (address, bytes) => device.use(({ exchange }) => write(exchange, address, bytes)),
      probe: (address) =>
        device.use(({ exchange }) =>
          read(exchange, address, { length: 1 }).then(
            () => true,
            (error: unknown) => {
              if (error instanceof AppError && error.code === 'not_found') return false
              throw error
            },
          ),
        ),
    },
    gpio: gpioOf((work) => device.use(({ exchange }) => work(exchange))),
    close: () => device.close(),
  }
}

const gpioOf = (use: <Result>(work: (exchange: Exchange) => Promise<Result>) => Promise<Result>): Gpio => ({
  lines: GPIO_MASK,
  outputs: GPIO_MASK,
  read: () => use(gpioState),
  write: (change) =>
    use(async (exchange) => {
      const settings = pinsToGpioReport(await accepted(exchange, getSettingsReport()), change.lines)
      if (settings) await accepted(exchange, settings)
      const { lines, value, direction } = change
      // Two steps: the chip does not say which of a line's changes it carries out first.
      if (value !== undefined) await accepted(exchange, setGpioReport({ lines, value }))
      if (direction !== undefined) await accepted(exchange, setGpioReport({ lines, direction }))
      return gpioState(exchange)
    }),
})

/** A line that does something else, such as showing I2C traffic, reads as an input that is low. */
async function gpioState(exchange: Exchange): Promise<GpioState> {
  const answer = await accepted(exchange, getGpioReport())
  let direction = 0
  let value = 0
  for (let line = 0; line < GPIO_LINES; line++) {
    const { value: level = 0, output = false } = gpioLine(answer, line) ?? {}
    value |= level << line
    direction |= (output ? 1 : 0) << line
  }
  return { direction, value }
}

async function accepted(exchange: Exchange, report: Uint8Array): Promise<Uint8Array> {
  const answer = await exchange(report)
  if (answer[1] !== 0) throw garbled(MCP2221, `that it refuses command ${COMMAND_NAMES.get(report[0] ?? 0) ?? report[0]}`)
  return answer
}

const COMMAND_NAMES: ReadonlyMap<number, string> = new Map(Object.entries(COMMAND).map(([name, code]) => [code, name]))
