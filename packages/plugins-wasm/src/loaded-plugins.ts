/** Loads the installed plugins, and records why a plugin could not be loaded. */
import { AppError, equalTexts, errorText, type Logger, sha256Hex } from '@sluice/sdk'
import { hostsGranted, type PluginsConfig } from './config.ts'
import { checkToolName } from './manifest.ts'
import type { PluginFolder } from './plugin-folder.ts'
import type { LoadedPlugin } from './plugin-tool.ts'

export interface RefusedPlugin {
  readonly name: string
  readonly reason: string
}

export interface LoadedPlugins {
  readonly loaded: readonly LoadedPlugin[]
  readonly refused: readonly RefusedPlugin[]
}

/** A plugin that cannot be loaded does not affect the others. Rejects once `signal` aborts. */
export async function loadPlugins(folder: PluginFolder, config: PluginsConfig, log: Logger, signal: AbortSignal): Promise<LoadedPlugins> {
  const loaded: LoadedPlugin[] = []
  const refused: RefusedPlugin[] = []
  for (const name of await folder.names()) {
    signal.throwIfAborted()
    try {
      loaded.push(await loadPlugin(name, folder, config, log))
    } catch (error) {
      if (signal.aborted) throw error
      refused.push({ name, reason: errorText(error) })
      log.warn('plugin not loaded', { plugin: name, reason: errorText(error) })
    }
  }
  return { loaded, refused }
}

async function loadPlugin(name: string, folder: PluginFolder, config: PluginsConfig, log: Logger): Promise<LoadedPlugin> {
  checkToolName(name)
  const { manifest, trust } = await folder.read(name)
  if (trust !== 'trusted' && config.security.signature_mode !== 'off')
    log.warn('plugin not signed by a trusted publisher', { plugin: name, trust })
  return {
    manifest,
    hosts: manifest.permissions.includes('network') ? hostsGranted(config, name) : [],
    async load() {
      const { module } = await folder.read(name)
      if (!equalTexts(sha256Hex(module), manifest.sha256)) throw new AppError('forbidden', 'The plugin was replaced after it was loaded')
      return module
    },
  }
}
