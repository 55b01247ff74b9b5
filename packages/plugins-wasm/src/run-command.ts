/** What `sluice plugin list|install|remove|info` do (§2.7 rule 9). */
import { AppError, type CommandContext, errorText } from '@sluice/sdk'
import type { CommandDeps } from './commands.ts'
import { hostsGranted } from './config.ts'
import { install } from './install.ts'
import { type Installed, PluginFolder } from './plugin-folder.ts'

const TURNED_OFF = 'Plugins are turned off: set enabled = true under [plugins].'
const KEY_WIDTH = 15

export const COMMAND_RUNS = {
  async list({ host, config }: CommandDeps, context: CommandContext) {
    argument(context, 0, 'plugin list')
    const folder = PluginFolder.of(host, config)
    const plugins = await Promise.all((await folder.names()).map((name) => shown(folder, name)))
    if (context.json) context.print(JSON.stringify(plugins))
    else if (plugins.length === 0) context.print('No plugins installed.')
    else for (const plugin of plugins) context.print(line(plugin))
    if (!config.enabled && plugins.length > 0) context.warn(TURNED_OFF)
  },

  async install({ host, config }: CommandDeps, context: CommandContext) {
    const source = argument(context, 1, 'plugin install <directory-or-archive-or-url>')
    const folder = PluginFolder.of(host, config)
    const { manifest, trust } = await install({ host, config, folder }, source, context.signal)
    const { name, version, permissions } = manifest
    context.print(context.json ? JSON.stringify(await shown(folder, name)) : `Installed ${name} ${version}.`)
    if (trust !== 'trusted' && config.security.signature_mode !== 'off') context.warn(`It is not signed by a trusted publisher (${trust}).`)
    if (permissions.includes('network') && hostsGranted(config, name).length === 0) {
      context.warn(`It asks for the network: to grant it hosts, set network under [plugins.grants.${name}].`)
    }
    if (!config.enabled) context.warn(TURNED_OFF)
  },

  async remove({ host, config }: CommandDeps, context: CommandContext) {
    const name = argument(context, 1, 'plugin remove <name>')
    await PluginFolder.of(host, config).remove(name)
    context.print(context.json ? JSON.stringify({ removed: name }) : `Removed ${name}.`)
  },

  async info({ host, config }: CommandDeps, context: CommandContext) {
    const name = argument(context, 1, 'plugin info <name>')
    const plugin = infoOf(await PluginFolder.of(host, config).read(name))
    if (context.json) context.print(JSON.stringify(plugin))
    else for (const [key, value] of Object.entries(plugin)) context.print(`${`${key}:`.padEnd(KEY_WIDTH)}${value?.toString() || '-'}`)
  },
}

/** The only argument, or none at all. */
function argument({ args }: CommandContext, count: 0 | 1, usage: string): string {
  if (args.length !== count || args[0]?.startsWith('-')) throw new AppError('invalid_request', `usage: sluice ${usage}`)
  return args[0] ?? ''
}

const infoOf = ({ manifest, module, trust, source }: Installed) => ({
  name: manifest.name,
  version: manifest.version,
  description: manifest.description,
  permissions: manifest.permissions,
  trust,
  publisher_key: manifest.publisher_key ?? null,
  sha256: manifest.sha256,
  module_bytes: module.length,
  source: source || null,
})

type Shown = ReturnType<typeof infoOf> | { readonly name: string; readonly problem: string }

const shown = (folder: PluginFolder, name: string): Promise<Shown> =>
  folder.read(name).then(infoOf, (error: unknown) => ({ name, problem: errorText(error) }))

const line = (plugin: Shown): string =>
  'problem' in plugin
    ? `${plugin.name} is not loaded: ${plugin.problem}`
    : `${plugin.name} ${plugin.version} — ${plugin.description} (${plugin.trust})`
