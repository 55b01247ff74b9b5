/** Names of commands of earlier releases. For one minor release they still work, with a warning; see docs/compatibility.md. */
import type { CliCommand } from './command.ts'
import type { Output } from './context.ts'
import { findCommand } from './find-command.ts'

export interface FormerCommand {
  readonly name: string
  readonly becomes: string
  /** The release that renamed it. The next minor release deletes this row, and then refuses the name. */
  readonly since: string
}

/** The former commands of this release. */
export const FORMER_COMMANDS: readonly FormerCommand[] = [{ name: 'completions', becomes: 'completion', since: '0.2.0' }]

/** Returns the command that has replaced the former one of these arguments, and warns; undefined if they name none. */
export function formerCommand(argv: readonly string[], commands: readonly CliCommand[], out: Output): CliCommand | undefined {
  const former = FORMER_COMMANDS.find(({ name }) => name.split(' ').every((word, index) => argv[index] === word))
  const command = former && findCommand(former.becomes.split(' '), commands)
  if (!former || !command) return undefined
  out.warn(
    `'sluice ${former.name}' is called 'sluice ${former.becomes}' since ${former.since}. Use that name, because a later release refuses this one`,
  )
  return { ...command, name: former.name }
}
