/** The names of `sluice plugin list|install|remove|info` (§2.7 rule 9); what they do is loaded when one is run. */
import { AppError, CATALOGUE, type Command, type CommandContext, type Host } from '@sluice/sdk'
import type { PluginsConfig } from './config.ts'

export interface CommandDeps {
  readonly host: Pick<Host, 'publicFetch' | 'dataDir'>
  readonly config: PluginsConfig
}

/** They work while plugins are turned off, too. */
export function pluginCommands(host: CommandDeps['host'], config: PluginsConfig): Command[] {
  const { commandHelp } = CATALOGUE['plugins-wasm']
  const command = (name: 'list' | 'install' | 'remove' | 'info'): Command => ({
    name: `plugin ${name}`,
    ...commandHelp[`plugin ${name}`],
    async run(context: CommandContext) {
      const { COMMAND_RUNS } = await import('./run-command.ts')
      await COMMAND_RUNS[name]({ host, config }, context).catch((error: unknown) => {
        throw asRefusal(error)
      })
      return 0
    },
  })
  return [command('list'), command('install'), command('remove'), command('info')]
}

/** What the file system refuses, most often to somebody else than who runs the daemon, is no fault of ours. */
function asRefusal(error: unknown): unknown {
  const { syscall, path, code } = (error instanceof Error ? error : {}) as NodeJS.ErrnoException
  if (error instanceof AppError || syscall === undefined) return error
  return new AppError('unavailable', `${path ?? 'the folder of plugins'} cannot be used: ${code}`, { cause: error })
}
