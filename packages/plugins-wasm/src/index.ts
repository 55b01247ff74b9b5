/** WASM plugins as tools, each call in a worker and an instance of its own (§2.7, `[plugins]`). */
import { defineFeature, type Host, type Parts } from '@sluice/sdk'
import { pluginCommands } from './commands.ts'
import { type PluginsConfig, pluginsSection } from './config.ts'
import type { RunningPlugins } from './running-plugins.ts'

export default defineFeature({
  id: 'plugins-wasm',
  section: pluginsSection,
  build: (host, config) =>
    config.enabled ? atWork(host, config) : { commands: pluginCommands(host, config), disabledReason: '`enabled` is false' },
})

function atWork(host: Host, config: PluginsConfig): Parts {
  let running: RunningPlugins | undefined
  return {
    commands: pluginCommands(host, config),
    /** None before `register`: what plugins there are stands in their folder. */
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
