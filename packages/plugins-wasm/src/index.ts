/** WebAssembly plugins as tools. Each call runs in a worker thread and an instance of its own. See `docs/plugins.md`. */
import { defineFeature, type Host, type Parts } from '@sluice/sdk'
import { pluginCommands } from './commands.ts'
import { type PluginsConfig, pluginsSection } from './config.ts'
import type { RunningPlugins } from './running-plugins.ts'

export default defineFeature({
  id: 'plugins-wasm',
  section: pluginsSection,
  build: (host, config) =>
    config.enabled ? enabledParts(host, config) : { commands: pluginCommands(host, config), disabledReason: '`enabled` is false' },
})

function enabledParts(host: Host, config: PluginsConfig): Parts {
  let running: RunningPlugins | undefined
  return {
    commands: pluginCommands(host, config),
    /** Empty before `register`, which reads the plugin folder. */
    get tools() {
      return running?.tools ?? []
    },
    check: async (signal) => running?.check(signal) ?? [],
    async register(signal) {
      const { startPlugins } = await import('./running-plugins.ts')
      running = await startPlugins(host, config, signal)
    },
    close: async () => running?.close(),
  }
}
