/** `hardware_board_info`, `hardware_memory_map` and `hardware_capabilities`: the tools that describe boards. */
import { type Board, boardNamed, type DeviceGuard } from '@sluice/hardware'
import { AppError, defineTool, errorText, type Host, type Tool } from '@sluice/sdk'
import * as v from 'valibot'
import type { PeripheralsConfig } from '../config.ts'
import type { Capabilities } from '../protocol/answers.ts'
import type { Registry } from '../registry/registry.ts'
import { factsOf, knownBoard, memoryLines } from './board-facts.ts'
import { device, ranges } from './gpio.ts'

const board = v.optional(
  v.pipe(
    v.string(),
    v.minLength(1),
    v.maxLength(64),
    v.description('Name such as board_c1, or the alias of a device such as board_c0; default: the first configured one'),
  ),
)
const described = v.pipe(
  v.strictObject({ board, device }),
  v.check((input) => input.board === undefined || input.device === undefined, 'name the board by `board` or by `device`, not by both'),
)

export function boardTools(host: Host, config: PeripheralsConfig, registry: Registry, guard: DeviceGuard): readonly Tool[] {
  const available = (): boolean => config.enabled && config.boards.length > 0
  const boardOf = async ({ board, device: alias = board }: Described, signal: AbortSignal): Promise<Board> => {
    if (alias === undefined) {
      const first = config.boards.map((entry) => boardNamed(entry.board)).find((known) => known !== undefined)
      if (first) return first
      throw new AppError('not_found', 'No board with a data sheet is configured in [[peripherals.boards]]')
    }
    const named = boardNamed(alias)
    if (named) return named
    await registry.ready(signal)
    const isDevice = registry.all().some((known) => known.alias === alias)
    // Throws the error for an unknown board, or for a device that is not connected.
    if (!isDevice && board !== undefined) return knownBoard(alias)
    const { board: model } = registry.pick(alias)
    if (model) return model
    throw new AppError('not_found', `There is no data sheet for the board of ${alias}`)
  }
  return [boardInfo(host, boardOf, available), memoryMap(host, boardOf, available), capabilities(registry, guard, available)]
}

type Described = v.InferOutput<typeof described>
type BoardOf = (input: Described, signal: AbortSignal) => Promise<Board>

const boardInfo = (host: Host, boardOf: BoardOf, available: () => boolean): Tool =>
  defineTool({
    name: 'hardware_board_info',
    description: 'Describes a board: chip, architecture, description and memory; read live where a debug probe reaches it.',
    input: described,
    risk: 'read',
    decider: 'asker',
    egress: false,
    untrusted: false,
    available,
    async run(input, { signal }) {
      const facts = await factsOf(host, await boardOf(input, signal), signal)
      const { board: known, chip, architecture, source } = facts
      return [
        `Board: ${known.name} (${source})`,
        `Chip: ${chip}`,
        `Architecture: ${architecture}`,
        `Description: ${known.description}`,
        ...memoryLines(facts),
      ].join('\n')
    },
  })

const memoryMap = (host: Host, boardOf: BoardOf, available: () => boolean): Tool =>
  defineTool({
    name: 'hardware_memory_map',
    description: "Lists a board's memory ranges; read live where a debug probe reaches it, from its data sheet otherwise.",
    input: described,
    risk: 'read',
    decider: 'asker',
    egress: false,
    untrusted: false,
    available,
    async run(input, { signal }) {
      const facts = await factsOf(host, await boardOf(input, signal), signal)
      return [`${facts.board.name} (${facts.source}):`, ...memoryLines(facts)].join('\n')
    },
  })

const capabilities = (registry: Registry, guard: DeviceGuard, available: () => boolean): Tool =>
  defineTool({
    name: 'hardware_capabilities',
    description: 'Asks connected boards which GPIO pins and which LED they have.',
    input: v.strictObject({ device }),
    risk: 'read',
    decider: 'asker',
    egress: false,
    untrusted: false,
    available,
    async run({ device: named }, context) {
      await registry.ready(context.signal)
      const asked = named === undefined ? registry.all().filter(({ connected }) => connected) : [registry.pick(named)]
      // Throws the error for a missing device.
      if (asked.length === 0) registry.pick(undefined, ({ connected }) => connected)
      const lines = await Promise.all(
        asked.map(async ({ alias }) => {
          try {
            const use = { device: alias, tool: 'hardware_capabilities', context }
            return capabilitiesText(alias, await guard.use(use, () => registry.line(alias).capabilities(context.signal)))
          } catch (error) {
            // Without a named device, the other boards are still worth listing.
            if (named !== undefined || context.signal.aborted || !(error instanceof AppError)) throw error
            return `${alias}: ${errorText(error)}`
          }
        }),
      )
      return lines.join('\n')
    },
  })

function capabilitiesText(alias: string, { gpio, led, firmware }: Capabilities): string {
  const parts = [gpio && `GPIO ${ranges(gpio)}`, led !== null && `LED on pin ${led}`, firmware && `firmware ${firmware}`].filter(Boolean)
  return `${alias}: ${parts.length > 0 ? parts.join('; ') : 'it does not list its pins'}`
}
