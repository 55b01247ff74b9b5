/** `sluice hardware …` and `sluice peripheral …` (§2.7 rule 4): what they do is loaded when one is run. */
import { CATALOGUE, type Command, type CommandContext, type Host } from '@sluice/sdk'
import type { PeripheralsConfig } from '../config.ts'
import type { Devices } from '../devices.ts'
import type { Mounts } from '../flash/boot-volume.ts'
import type { Machine } from '../registry/machine.ts'

export interface CommandDeps {
  readonly host: Host
  readonly config: PeripheralsConfig
  readonly devices: Devices
  readonly machine: Pick<Machine, 'check' | 'open'>
  readonly mounts?: Mounts
}

/** Resolves to the exit code. */
export type RunCommand = (deps: CommandDeps, context: CommandContext) => Promise<number>

/** They work while `enabled` is false, too. */
export function hardwareCommands(deps: CommandDeps): Command[] {
  const help = CATALOGUE['hardware-boards'].commandHelp
  const command = (name: keyof typeof help, pick: (commands: typeof import('../when-needed.ts')) => RunCommand): Command => ({
    name,
    ...help[name],
    run: async (context) => pick(await import('../when-needed.ts'))(deps, context),
  })
  return [
    command('hardware discover', ({ discover }) => discover),
    command('hardware introspect', ({ introspect }) => introspect),
    command('peripheral add', ({ add }) => add),
    command('peripheral list', ({ list }) => list),
    command('peripheral flash', ({ flash }) => flash),
  ]
}
