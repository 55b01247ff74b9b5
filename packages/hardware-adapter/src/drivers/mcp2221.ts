/** The Microchip MCP2221 and MCP2221A: I2C and four GPIO lines over USB HID. */
import { AppError, type Clock } from '@sluice/sdk'
import type { Adapter, Gpio, GpioState, I2c } from '../adapter.ts'
import type { HidPort } from '../native.ts'
import { KeptOpen } from './kept-open.ts'
import { type Exchange, exchangeAccepted, exchangeWith, MCP2221 } from './mcp2221-exchange.ts'
import { readBytes, setSpeed, writeBytes } from './mcp2221-i2c.ts'
import {
  GPIO_LINES,
  GPIO_MASK,
  getGpioReport,
  getSettingsReport,
  gpioLine,
  I2C_SPEED_RANGE,
  pinsToGpioReport,
  setGpioReport,
} from './mcp2221-report.ts'

type Use = <Result>(work: (exchange: Exchange) => Promise<Result>) => Promise<Result>

/** Creates the driver. `open` rejects with the error that callers see. */
export function mcp2221(clock: Clock, i2cSpeedHz: number, open: () => Promise<HidPort>): Adapter {
  const device = new KeptOpen(clock, async () => {
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
  const use: Use = (work) => device.use(({ exchange }) => work(exchange))

  return {
    name: MCP2221,
    abilities: { i2cSpeedHz: I2C_SPEED_RANGE, spiModes: [], pullUps: false, volts: [] },
    i2c: i2cOf(use),
    gpio: gpioOf(use),
    close: () => device.close(),
  }
}

const i2cOf = (use: Use): I2c => ({
  read: (address, length, register) => use((exchange) => readBytes(exchange, address, length, register)),
  write: (address, bytes) => use((exchange) => writeBytes(exchange, address, bytes)),
  probe: (address) =>
    use((exchange) =>
      readBytes(exchange, address, 1).then(
        () => true,
        (error: unknown) => {
          if (error instanceof AppError && error.code === 'not_found') return false
          throw error
        },
      ),
    ),
})

const gpioOf = (use: Use): Gpio => ({
  lines: GPIO_MASK,
  outputs: GPIO_MASK,
  read: () => use(gpioState),
  write: ({ lines, value, direction }) =>
    use(async (exchange) => {
      const settings = pinsToGpioReport(await exchangeAccepted(exchange, getSettingsReport()), lines)
      if (settings) await exchangeAccepted(exchange, settings)
      // The data sheet does not say in which order one report changes value and direction, so each has a report of its own.
      if (value !== undefined) await exchangeAccepted(exchange, setGpioReport({ lines, value }))
      if (direction !== undefined) await exchangeAccepted(exchange, setGpioReport({ lines, direction }))
      return gpioState(exchange)
    }),
})

/** A line with another function, such as showing I2C traffic, reads as a low input. */
async function gpioState(exchange: Exchange): Promise<GpioState> {
  const answer = await exchangeAccepted(exchange, getGpioReport())
  let direction = 0
  let value = 0
  for (let line = 0; line < GPIO_LINES; line++) {
    const { value: level = 0, isOutput = false } = gpioLine(answer, line) ?? {}
    value |= level << line
    direction |= (isOutput ? 1 : 0) << line
  }
  return { direction, value }
}
