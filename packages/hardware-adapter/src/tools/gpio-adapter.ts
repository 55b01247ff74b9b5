/** The tool `gpio_adapter`. */
import { AppError, defineTool, type Tool } from '@sluice/sdk'
import * as v from 'valibot'
import type { Gpio, GpioChange, GpioState } from '../adapter.ts'
import { binaryMask } from '../hex.ts'
import { byte, deviceKey, partMissing, requirePart, type ToolKit, usePart } from './tool-kit.ts'

const mask = (description: string) => v.optional(v.pipe(byte, v.description(description)))

const input = v.object({
  device: deviceKey,
  action: v.picklist(['set', 'get']),
  lines: mask('For `set`: the lines to change, one bit each; default: all that can be outputs'),
  direction: mask('For `set`: 1 makes a line an output, 0 an input; default: unchanged'),
  value: mask('For `set`: the levels of outputs; default: unchanged'),
})

export const gpioAdapter = (kit: ToolKit): Tool =>
  defineTool({
    name: 'gpio_adapter',
    description:
      'Reads or sets the GPIO lines of an I2C/SPI adapter as 8-bit masks, line 0 in the lowest bit. Returns directions and levels.',
    risk: ({ action }) => (action === 'get' ? 'read' : 'execute'),
    decider: 'asker',
    egress: false,
    untrusted: false,
    input,
    precheck: requirePart(kit, 'gpio'),
    available: () => kit.adapters.present().length > 0,
    async run(call, context) {
      const { device, action } = call
      const use = { device, tool: 'gpio_adapter', context }
      if (action === 'get') {
        const { result, notes } = await usePart(kit, 'gpio', use, async (gpio) => stateText(gpio, await gpio.read()))
        return `GPIO ${result}${notes}`
      }
      const { gpio, alias, name } = await gpioOf(kit, device)
      const change = changeOf(call, gpio, name)
      const pins = linesOf(change.lines)
      const { result, notes } = await usePart(kit, 'gpio', { ...use, device: alias, write: { ...change }, pins }, async (held) =>
        stateText(held, await held.write(change)),
      )
      return `GPIO set; ${result}${notes}`
    },
  })

async function gpioOf({ adapters }: ToolKit, device: string | undefined): Promise<{ gpio: Gpio; alias: string; name: string }> {
  const { alias, adapter } = await adapters.pick(device)
  if (!adapter.gpio) throw partMissing(alias, adapter, 'gpio')
  return { gpio: adapter.gpio, alias, name: adapter.name }
}

/** Checks a `set` against the lines of the adapter. Throws `invalid_request` for a mask that does not fit. */
function changeOf(call: v.InferOutput<typeof input>, { lines: existing, outputs }: Gpio, name: string): GpioChange {
  const { lines = outputs, direction, value } = call
  if (direction === undefined && value === undefined) throw new AppError('invalid_request', 'set needs direction, value or both')
  if ((lines & ~existing) !== 0) throw new AppError('invalid_request', `The ${name} has only the lines ${binaryMask(existing)}`)
  if (lines === 0) throw new AppError('invalid_request', 'lines must name at least one line; got 0')
  for (const [key, bits] of [
    ['direction', direction],
    ['value', value],
  ] as const) {
    if (bits !== undefined && (bits & ~lines) !== 0)
      throw new AppError('invalid_request', `${key} has bits outside of lines ${binaryMask(lines)}`)
  }
  if (((direction ?? 0) & lines & ~outputs) !== 0)
    throw new AppError('invalid_request', `The ${name} can only use the lines ${binaryMask(outputs)} as outputs`)
  return { lines, ...(direction !== undefined && { direction }), ...(value !== undefined && { value }) }
}

/** Returns the numbers of the lines in a mask. */
const linesOf = (lines: number): number[] => Array.from({ length: 8 }, (_none, line) => line).filter((line) => ((lines >> line) & 1) === 1)

const stateText = ({ lines }: Gpio, { direction, value }: GpioState): string =>
  `lines ${binaryMask(lines)}, direction ${binaryMask(direction)} (1: output), value ${binaryMask(value)}`
