/** `gpio_write` and `gpio_read`: one pin of a board. */
import type { DeviceGuard } from '@sluice/hardware'
import { AppError, defineTool, type Tool } from '@sluice/sdk'
import * as v from 'valibot'
import { checkConnected } from '../devices.ts'
import type { Registry } from '../registry/registry.ts'
import type { BoardLine } from '../transports/board-line.ts'
import { device, pin } from './pins.ts'

const level = v.pipe(v.picklist([0, 1]), v.description('0: low, 1: high'))

export const gpioTools = (registry: Registry, guard: DeviceGuard): readonly Tool[] => [
  defineTool({
    name: 'gpio_write',
    description: 'Sets one GPIO pin of a connected board to 0 (low) or 1 (high).',
    input: v.object({ device, pin, value: level }),
    risk: 'execute',
    async precheck({ device: named }, { signal }) {
      await registry.ready(signal)
      checkConnected(registry.pick(named))
    },
    async run({ device: named, pin, value }, context) {
      await registry.ready(context.signal)
      const { alias } = registry.pick(named)
      const use = { device: alias, tool: 'gpio_write', context, pins: [pin], write: { pin, value } }
      const line = registry.line(alias)
      // Before it is reserved and on record: what cannot be done leaves no trace.
      await guard.use({ device: alias, tool: 'gpio_write', context }, () => checkPin(alias, line, pin, context.signal))
      await guard.use(use, () => line.write(pin, value, context.signal))
      return `GPIO ${pin} set ${nameOf(value)} on ${alias}`
    },
  }),
  defineTool({
    name: 'gpio_read',
    description: 'Reads one GPIO pin of a connected board: 0 (low) or 1 (high).',
    input: v.object({ device, pin }),
    risk: 'read',
    async run({ device: named, pin }, context) {
      await registry.ready(context.signal)
      const { alias } = registry.pick(named)
      const line = registry.line(alias)
      const value = await guard.use({ device: alias, tool: 'gpio_read', context }, async () => {
        await checkPin(alias, line, pin, context.signal)
        return line.read(pin, context.signal)
      })
      context.report?.({ data: String(value) })
      return `GPIO ${pin} is ${nameOf(value)} (${value}) on ${alias}`
    },
  }),
]

const nameOf = (value: 0 | 1): string => (value === 1 ? 'HIGH' : 'LOW')

/** Throws `invalid_request` for a pin the board says it does not have. One that says nothing refuses by itself. */
async function checkPin(alias: string, line: BoardLine, pin: number, signal: AbortSignal): Promise<void> {
  const { gpio } = await line.capabilities(signal)
  if (gpio && !gpio.includes(pin)) throw new AppError('invalid_request', `${alias} has no GPIO pin ${pin}; it has ${ranges(gpio)}`)
}

/** 2, 3, 4, 9 → `2-4, 9` */
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
