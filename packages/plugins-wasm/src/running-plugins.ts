/** The running plugins: loads them, offers them as tools and watches their folder. This module is loaded only when plugins are enabled. */
import type { Finding, Host, Tool } from '@sluice/sdk'
import { checkPlace } from './check-place.ts'
import type { PluginsConfig } from './config.ts'
import { loadPlugins } from './loaded-plugins.ts'
import { PluginFolder } from './plugin-folder.ts'
import { PluginThreads } from './plugin-threads.ts'
import { pluginTool } from './plugin-tool.ts'
import { selfCheck } from './self-check.ts'

export interface RunningPlugins {
  readonly tools: readonly Tool[]
  check(signal: AbortSignal): Promise<readonly Finding[]>
  close(): Promise<void>
}

/** Loads the installed plugins. Rejects once `signal` aborts, and then leaves nothing running. */
export async function startPlugins(host: Host, config: PluginsConfig, signal: AbortSignal): Promise<RunningPlugins> {
  const folder = PluginFolder.of(host.dataDir, config)
  for (const workspace of host.workspaces) await checkPlace(folder.path, workspace, host.dataDir)
  // Taken before the plugins are read, so that no change is missed in between.
  const known = await folder.stamp()
  const plugins = await loadPlugins(folder, config, host.log, signal)
  signal.throwIfAborted()
  const threads = new PluginThreads(host.clock, config.limits)
  const closed = new AbortController()
  void folder.untilChanged(known, host.clock, closed.signal).then(() => closed.signal.aborted || host.rebuild('plugins changed'))
  return {
    tools: plugins.loaded.map((plugin) => pluginTool(plugin, threads, host.publicFetch)),
    check: (checkSignal) => selfCheck(threads, plugins, checkSignal),
    async close() {
      closed.abort()
      await threads.close()
    },
  }
}
