/** Declares the `sluice plugin` commands. Their code is loaded when one of them runs. */
import { AppError, CATALOGUE, type Command, type CommandContext, type Host } from '@sluice/sdk'
import type { PluginsConfig } from './config.ts'

type CommandName = 'list' | 'install' | 'remove' | 'info'

/** The commands also work while plugins are turned off. */
export function pluginCommands(host: Host, config: PluginsConfig): Command[] {
  const { commandHelp } = CATALOGUE['plugins-wasm']
  const command = (name: CommandName): Command => ({
    name: `plugin ${name}`,
    ...commandHelp[`plugin ${name}`],
    async run(context: CommandContext) {
      const { PluginCommands } = await import('./plugin-commands.ts')
      await new PluginCommands(host, config)[name](context).catch((error: unknown) => {
        throw asAppError(error)
      })
      return 0
    },
  })
  return [command('list'), command('install'), command('remove'), command('info')]
}

/** Turns an error of the file system, usually a missing permission of the caller, into `unavailable`. */
function asAppError(error: unknown): unknown {
  const { syscall, path, code } = (error instanceof Error ? error : {}) as NodeJS.ErrnoException
  if (error instanceof AppError || syscall === undefined) return error
  return new AppError('unavailable', `'${path ?? 'the plugin folder'}' cannot be used: ${code}`, { cause: error })
}
