/** The commands `sluice plugin list`, `install`, `remove` and `info`. See `docs/plugins.md`. */
import { AppError, type AuditKind, type CommandContext, errorText, type Host, printableLine } from '@sluice/sdk'
import { hostsGranted, type PluginsConfig } from './config.ts'
import { PluginInstaller } from './install.ts'
import { type Installed, PluginFolder } from './plugin-folder.ts'

const TURNED_OFF = 'Plugins are turned off: set enabled = true under [plugins].'
const KEY_WIDTH = 15

export class PluginCommands {
  readonly #host: Host
  readonly #config: PluginsConfig
  readonly #folder: PluginFolder

  constructor(host: Host, config: PluginsConfig) {
    this.#host = host
    this.#config = config
    this.#folder = PluginFolder.of(host.dataDir, config)
  }

  async list(context: CommandContext): Promise<void> {
    onlyArgument(context, 0, 'plugin list')
    const names = await this.#folder.names()
    const plugins = await Promise.all(names.map((name) => this.#summary(name)))
    if (context.json) context.print(JSON.stringify(plugins))
    else if (plugins.length === 0) context.print('No plugins installed.')
    else for (const plugin of plugins) context.print(summaryLine(plugin))
    if (!this.#config.enabled && plugins.length > 0) context.warn(TURNED_OFF)
  }

  async install(context: CommandContext): Promise<void> {
    const source = onlyArgument(context, 1, 'plugin install <directory-or-archive-or-url>')
    const installer = new PluginInstaller(this.#host.publicFetch, this.#config, this.#folder)
    const { manifest, trust } = await installer.install(source, context.cwd, context.signal)
    const { name, version, permissions } = manifest
    await this.#record('plugin_installed', { plugin: name, version, source: printableLine(source), trust }, context)
    context.print(context.json ? JSON.stringify(await this.#summary(name)) : `Installed ${name} ${version}.`)
    if (trust !== 'trusted' && this.#config.security.signature_mode !== 'off')
      context.warn(`It is not signed by a trusted publisher (${trust}).`)
    if (permissions.includes('network') && hostsGranted(this.#config, name).length === 0)
      context.warn(`It asks for the network: to grant it hosts, set network under [plugins.grants.${name}].`)
    if (!this.#config.enabled) context.warn(TURNED_OFF)
  }

  async remove(context: CommandContext): Promise<void> {
    const name = onlyArgument(context, 1, 'plugin remove <name>')
    await this.#folder.remove(name)
    await this.#record('plugin_removed', { plugin: name }, context)
    context.print(context.json ? JSON.stringify({ removed: name }) : `Removed ${name}.`)
  }

  async info(context: CommandContext): Promise<void> {
    const name = onlyArgument(context, 1, 'plugin info <name>')
    const plugin = infoOf(await this.#folder.read(name))
    if (context.json) context.print(JSON.stringify(plugin))
    else for (const [key, value] of Object.entries(plugin)) context.print(`${`${key}:`.padEnd(KEY_WIDTH)}${value?.toString() || '-'}`)
  }

  async #record(kind: AuditKind, detail: Readonly<Record<string, unknown>>, { by }: CommandContext): Promise<void> {
    await this.#host.service('audit')?.({ kind, by, detail })
  }

  #summary(name: string): Promise<Summary> {
    return this.#folder.read(name).then(infoOf, (error: unknown) => ({ name, problem: errorText(error) }))
  }
}

/** Returns the argument of a command that takes one, or an empty text for a command that takes none. Throws `invalid_request`. */
function onlyArgument({ args }: CommandContext, count: 0 | 1, usage: string): string {
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

type Summary = ReturnType<typeof infoOf> | { readonly name: string; readonly problem: string }

const summaryLine = (plugin: Summary): string =>
  'problem' in plugin
    ? `${plugin.name} is not loaded: ${plugin.problem}`
    : `${plugin.name} ${plugin.version} — ${plugin.description} (${plugin.trust})`
