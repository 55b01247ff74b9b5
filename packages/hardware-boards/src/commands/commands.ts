/** The commands `sluice hardware …` and `sluice peripheral …`. The code of a command is loaded when it is run. */
import { CATALOGUE, type Command, type CommandContext, type Host } from '@sluice/sdk'
import type { PeripheralsConfig } from '../config.ts'
import type { Devices } from '../devices.ts'
import type { Mounts } from '../flash/boot-volume.ts'
import type { Machine } from '../registry/machine.ts'

/** The parts of the feature and of this machine that the commands use. */
export interface Hardware {
  readonly host: Host
  readonly config: PeripheralsConfig
  readonly devices: Devices
  readonly machine: Pick<Machine, 'check' | 'open'>
  /** The mounts of this machine unless given. */
  readonly mounts?: Mounts | undefined
}

/** Resolves to the exit code. */
export type RunCommand = (hardware: Hardware, context: CommandContext) => Promise<number>

/** The commands also work while `enabled` is false. */
export function hardwareCommands(hardware: Hardware): Command[] {
  const help = CATALOGUE['hardware-boards'].commandHelp
  const command = (name: keyof typeof help, pick: (commands: typeof import('../on-demand.ts')) => RunCommand): Command => ({
    name,
    ...help[name],
    run: async (context) => pick(await import('../on-demand.ts'))(hardware, context),
  })
  return [
    command('hardware discover', ({ discover }) => discover),
    command('hardware introspect', ({ introspect }) => introspect),
    command('peripheral add', ({ add }) => add),
    command('peripheral list', ({ list }) => list),
    command('peripheral flash', ({ flash }) => flash),
  ]
}
