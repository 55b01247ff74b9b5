/** The plugins of a daemon at work: loaded, offered as tools, watched for changes. Loaded itself only where they are enabled. */
import type { Finding, Host, Tool } from '@sluice/sdk'
import { checkPlace } from './check-place.ts'
import type { PluginsConfig } from './config.ts'
import { loadPlugins } from './loaded-plugins.ts'
import { PluginFolder } from './plugin-folder.ts'
import { PluginThreads } from './plugin-threads.ts'
import { pluginTool } from './plugin-tool.ts'
import { selfCheck } from './self-check.ts'
import { watchFolder } from './watch-folder.ts'

export interface RunningPlugins {
  readonly tools: readonly Tool[]
  check(signal: AbortSignal): Promise<readonly Finding[]>
  close(): Promise<void>
}

/** Rejects once `signal` aborts, and then leaves nothing behind. */
export async function startPlugins(host: Host, config: PluginsConfig, signal: AbortSignal): Promise<RunningPlugins> {
  const folder = PluginFolder.of(host, config)
  await checkPlace(folder.path, host)
  const stamp = () => folder.stamp()
  // Before the look, so that no change falls between the two.
  const known = await stamp()
  const plugins = await loadPlugins(folder, config, host.log, signal)
  signal.throwIfAborted()
  const threads = new PluginThreads(host.clock, config.limits)
  const closed = new AbortController()
  void watchFolder({ stamp, known }, host.clock, closed.signal, () => host.rebuild('plugins came or went'))
  return {
    tools: plugins.loaded.map((plugin) => pluginTool(plugin, threads, host)),
    check: (checking) => selfCheck(threads, plugins, checking),
    async close() {
      closed.abort()
      await threads.close()
    },
  }
}
