/** The names of `sluice plugin list|install|remove|info` (§2.7 rule 9); what they do is loaded when one is run. */
import type { Command, CommandContext, Host } from '@sluice/sdk'
import type { PluginsConfig } from './config.ts'

export interface CommandDeps {
  readonly host: Pick<Host, 'publicFetch' | 'dataDir'>
  readonly config: PluginsConfig
}

/** They work while plugins are turned off, too. */
export function pluginCommands(host: CommandDeps['host'], config: PluginsConfig): Command[] {
  const run = (name: 'list' | 'install' | 'remove' | 'info') => async (context: CommandContext) => {
    const { COMMAND_RUNS } = await import('./run-command.ts')
    await COMMAND_RUNS[name]({ host, config }, context)
    return 0
  }
  return [
    { name: 'plugin list', summary: 'List installed plugins, and what is wrong with them', run: run('list') },
    {
      name: 'plugin install',
      summary: 'Install a plugin from a folder or a .tar.gz at an https URL',
      usage: '<directory-or-url>',
      run: run('install'),
    },
    { name: 'plugin remove', summary: 'Remove an installed plugin', usage: '<name>', run: run('remove') },
    { name: 'plugin info', summary: 'Show what an installed plugin says of itself, and who signed it', usage: '<name>', run: run('info') },
  ]
}
