/** The names of `sluice plugin list|install|remove|info` (§2.7 rule 9); what they do is loaded when one is run. */
import { CATALOGUE, type Command, type CommandContext, type Host } from '@sluice/sdk'
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
      await COMMAND_RUNS[name]({ host, config }, context)
      return 0
    },
  })
  return [command('list'), command('install'), command('remove'), command('info')]
}
