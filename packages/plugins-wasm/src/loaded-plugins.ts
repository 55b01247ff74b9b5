/** The plugins of this daemon: those that are tools, and those that are not and why. */
import { AppError, equalTexts, errorText, type Host, sha256Hex } from '@sluice/sdk'
import { hostsGranted, type PluginsConfig } from './config.ts'
import type { PluginFolder } from './plugin-folder.ts'
import type { LoadedPlugin } from './plugin-tool.ts'
import { checkToolName } from './tool-names.ts'

export interface RefusedPlugin {
  readonly name: string
  readonly reason: string
}

export interface LoadedPlugins {
  readonly loaded: readonly LoadedPlugin[]
  readonly refused: readonly RefusedPlugin[]
}

/** One that is not as it has to be keeps no other from loading. */
export async function loadPlugins(
  folder: PluginFolder,
  config: PluginsConfig,
  log: Host['log'],
  signal: AbortSignal,
): Promise<LoadedPlugins> {
  const loaded: LoadedPlugin[] = []
  const refused: RefusedPlugin[] = []
  for (const name of await folder.names()) {
    signal.throwIfAborted()
    try {
      checkToolName(name)
      const { manifest, trust } = await folder.read(name)
      if (trust !== 'trusted' && config.security.signature_mode !== 'off')
        log.warn('a plugin is not signed by a trusted publisher', { plugin: name, trust })
      const hosts = manifest.permissions.includes('network') ? hostsGranted(config, name) : []
      const load = async () => {
        const { module } = await folder.read(name)
        if (!equalTexts(sha256Hex(module), manifest.sha256)) throw new AppError('forbidden', 'the plugin was replaced since it was loaded')
        return module
      }
      loaded.push({ manifest, hosts, load })
    } catch (error) {
      if (signal.aborted) throw error
      refused.push({ name, reason: errorText(error) })
      log.warn('a plugin is not loaded', { plugin: name, reason: errorText(error) })
    }
  }
  return { loaded, refused }
}
