/** `gpio_write` and `gpio_read`: the tools for one pin of a board, and the inputs that all board tools share. */
import type { DeviceGuard } from '@sluice/hardware'
import { AppError, defineTool, type Tool } from '@sluice/sdk'
import * as v from 'valibot'
import { checkConnected } from '../devices.ts'
import type { Registry } from '../registry/registry.ts'
import type { BoardLine } from '../transports/board-line.ts'

const PIN_MAX = 511

export const device = v.optional(
  v.pipe(v.string(), v.regex(/^[a-z][a-z0-9_]{0,35}$/), v.description('Alias such as board_a0; may be left out when only one device fits')),
)
const pin = v.pipe(v.number(), v.integer(), v.minValue(0), v.maxValue(PIN_MAX), v.description("The board's own number of the pin"))
const level = v.pipe(v.picklist([0, 1]), v.description('0: low, 1: high'))

export const gpioTools = (registry: Registry, guard: DeviceGuard): readonly Tool[] => [
  defineTool({
    name: 'gpio_write',
    description: 'Sets one GPIO pin of a connected board to 0 (low) or 1 (high).',
    input: v.strictObject({ device, pin, value: level }),
    risk: 'execute',
    decider: 'asker',
    egress: false,
    untrusted: false,
    async precheck({ device: named }, { signal }) {
      await registry.ready(signal)
      checkConnected(registry.pick(named))
    },
    async run({ device: named, pin, value }, context) {
      await registry.ready(context.signal)
      const { alias } = registry.pick(named)
      const use = { device: alias, tool: 'gpio_write', context, pins: [pin], write: { pin, value } }
      const line = registry.line(alias)
      // Checks the pin before it is reserved and recorded, so that an impossible write leaves no trace.
      await guard.use({ device: alias, tool: 'gpio_write', context }, () => checkPin(alias, line, pin, context.signal))
      await guard.use(use, () => line.write(pin, value, context.signal))
      return `GPIO ${pin} set ${levelText(value)} on ${alias}`
    },
  }),
  defineTool({
    name: 'gpio_read',
    description: 'Reads one GPIO pin of a connected board: 0 (low) or 1 (high).',
    input: v.strictObject({ device, pin }),
    risk: 'read',
    decider: 'asker',
    egress: false,
    untrusted: false,
    async run({ device: named, pin }, context) {
      await registry.ready(context.signal)
      const { alias } = registry.pick(named)
      const line = registry.line(alias)
      const value = await guard.use({ device: alias, tool: 'gpio_read', context }, async () => {
        await checkPin(alias, line, pin, context.signal)
        return line.read(pin, context.signal)
      })
      context.report?.({ data: String(value) })
      return `GPIO ${pin} is ${levelText(value)} (${value}) on ${alias}`
    },
  }),
]

const levelText = (value: 0 | 1): string => (value === 1 ? 'HIGH' : 'LOW')

/**
 * Throws `invalid_request` for a pin that is not among the pins that the board lists. A board without a list refuses by
 * itself.
 */
async function checkPin(alias: string, line: BoardLine, pin: number, signal: AbortSignal): Promise<void> {
  const { gpio } = await line.capabilities(signal)
  if (gpio && !gpio.includes(pin)) throw new AppError('invalid_request', `${alias} has no GPIO pin ${pin}; it has ${ranges(gpio)}`)
}

/** Returns numbers in ascending order as text: 2, 3, 4, 9 become `2-4, 9`. */
export function ranges(pins: readonly number[]): string {
  const parts: string[] = []
  for (let index = 0; index < pins.length; index++) {
    const first = pins[index]
    while (pins[index + 1] === (pins[index] ?? 0) + 1) index++
    const last = pins[index]
    parts.push(first === last ? `${first}` : `${first}-${last}`)
  }
  return parts.join(', ') || 'none'
}
