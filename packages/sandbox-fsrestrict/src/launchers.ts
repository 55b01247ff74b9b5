/** Launchers: programs that make system calls and then become the command. Perl starts faster; Node is always present. */
import { fileURLToPath } from 'node:url'
import { findProgram } from '@sluice/kit'
import type { ProcessCommand } from '@sluice/sdk'
import { type AttributeGuard, encodeGuard } from './attribute-guard.ts'
import { PERL_LAUNCHER } from './perl-launcher.ts'
import { encodeCalls, type SystemCall } from './system-calls.ts'

export interface Launcher {
  readonly name: string
  readonly file: string
  /** The arguments before the calls and the command. */
  readonly args: readonly string[]
  /** Whether it can perform calls of the command; it then takes the guard, or an empty text, before the calls. */
  readonly canGuard: boolean
}

/** Returns the launchers of this machine in the order in which they are tried. */
export async function findLaunchers(): Promise<readonly Launcher[]> {
  const perl = await findProgram('perl')
  return [
    ...(perl === undefined ? [] : [{ name: 'perl', file: perl, args: ['-f', '-e', PERL_LAUNCHER, '--'], canGuard: true }]),
    await nodeLauncher(),
  ]
}

export async function nodeLauncher(): Promise<Launcher> {
  const { LAUNCHER_MARK, LAUNCHER_URL } = await import('./node-launcher.ts')
  return { name: 'node', file: process.execPath, args: [fileURLToPath(LAUNCHER_URL), LAUNCHER_MARK], canGuard: false }
}

/** Returns the process that makes the calls and then becomes `command`, if given. The command's environment does not affect the launcher. */
export function launch(
  { file, args, canGuard }: Launcher,
  calls: readonly SystemCall[],
  command?: ProcessCommand,
  guard?: AttributeGuard,
): ProcessCommand {
  return {
    file,
    args: [
      ...args,
      ...(canGuard ? [guard ? encodeGuard(guard) : ''] : []),
      encodeCalls(calls),
      ...(command ? [command.file, ...command.args] : []),
    ],
    cwd: command?.cwd ?? '/',
    env: Object.fromEntries(Object.entries(command?.env ?? {}).map(([name, value]) => [`COMMAND_${name}`, value])),
  }
}
