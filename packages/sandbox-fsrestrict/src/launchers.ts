/** Programs that can make system calls and then become another: Perl, which starts fast, or the Node we run on. */
import { fileURLToPath } from 'node:url'
import { findProgram } from '@sluice/kit'
import type { ProcessCommand } from '@sluice/sdk'
import { PERL_LAUNCHER } from './perl-launcher.ts'
import { encodeCalls, type SystemCall } from './system-calls.ts'

export interface Launcher {
  readonly name: string
  readonly file: string
  /** Come before the calls and the command. */
  readonly args: readonly string[]
}

/** In the order they are tried. */
export async function findLaunchers(): Promise<readonly Launcher[]> {
  const perl = await findProgram('perl')
  return [...(perl === undefined ? [] : [{ name: 'perl', file: perl, args: ['-f', '-e', PERL_LAUNCHER, '--'] }]), await nodeLauncher()]
}

export async function nodeLauncher(): Promise<Launcher> {
  const { LAUNCHER_MARK, LAUNCHER_URL } = await import('./launcher.ts')
  return { name: 'node', file: process.execPath, args: [fileURLToPath(LAUNCHER_URL), LAUNCHER_MARK] }
}

/** The command that makes the calls and then runs `command`, if there is one. Its environment takes no effect before that. */
export function launch({ file, args }: Launcher, calls: readonly SystemCall[], command?: ProcessCommand): ProcessCommand {
  return {
    file,
    args: [...args, encodeCalls(calls), ...(command ? [command.file, ...command.args] : [])],
    cwd: command?.cwd ?? '/',
    env: Object.fromEntries(Object.entries(command?.env ?? {}).map(([name, value]) => [`COMMAND_${name}`, value])),
  }
}
