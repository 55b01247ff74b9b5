/** Selects the command that a command line names, among the commands of the core and of the features, and prints help. */
import type { Feature } from '@sluice/sdk'
import manifest from '../package.json' with { type: 'json' }
import type { CliCommand } from './command.ts'
import type { Output } from './context.ts'
import { CORE_COMMANDS } from './core-commands.ts'
import { embedderCommand, featureCommands } from './feature-commands.ts'
import { commandFamily, findCommand, unknownCommand } from './find-command.ts'
import { formerCommand } from './former-commands.ts'
import { commandHelp, familyHelp, overview, shortHelp } from './help.ts'
import { isVersionOption, VERSION_LINE } from './version.ts'

/** Returns the command to run, or the exit code once `--version` or help has been printed. */
export async function selectCommand(argv: readonly string[], features: readonly Feature[], out: Output): Promise<CliCommand | number> {
  const commands = [...CORE_COMMANDS, ...featureCommands(features)]
  const words = argv.filter((word) => !word.startsWith('-'))
  const [firstWord] = words
  const wantsHelp = argv.includes('--help') || argv.includes('-h')
  const print = (text: string): number => {
    out.print(text)
    return 0
  }
  if (firstWord === undefined && argv.some(isVersionOption)) return print(VERSION_LINE)
  if (firstWord === undefined && !wantsHelp) {
    print(shortHelp(commands, manifest.version))
    return 2
  }
  if (firstWord === undefined || (firstWord === 'help' && words.length === 1)) return print(overview(commands, manifest.version))
  if (firstWord === 'help') return selectCommand([...words.slice(1), '--help'], features, out)
  const command = findCommand(argv, commands) ?? formerCommand(argv, commands, out) ?? embedderCommand(features, firstWord)
  const family = commandFamily(firstWord, commands)
  if (!command && wantsHelp && words.length === 1 && family.length > 0) return print(familyHelp(firstWord, family))
  const selected = command ?? (await unknownCommand(argv, commands))
  return wantsHelp ? print(commandHelp(selected)) : selected
}
