/** The commands `sluice hardware …` and `sluice peripheral …`. The code of a command is loaded when it is run. */
import { CATALOGUE, type Command } from '@sluice/sdk'
import type { Hardware, RunCommand } from './run-command.ts'

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
