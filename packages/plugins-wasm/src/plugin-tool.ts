/** A plugin as a tool of the model's. */
import { defineTool, type Host, type Tool } from '@sluice/sdk'
import * as v from 'valibot'
import { inputDescription, type Manifest } from './manifest.ts'
import { pluginHttp } from './plugin-http.ts'
import type { PluginThreads } from './plugin-threads.ts'

export interface LoadedPlugin {
  readonly manifest: Manifest
  /** Hosts it may reach: none, unless it asks for the network and the operator granted some. */
  readonly hosts: readonly string[]
  /** The module, checked anew. */
  load(): Promise<Uint8Array>
}

export function pluginTool({ manifest, hosts, load }: LoadedPlugin, threads: PluginThreads, host: Pick<Host, 'publicFetch'>): Tool {
  const { name, description, permissions } = manifest
  const ask = pluginHttp(host, hosts)
  const callable = { name, hasNetwork: permissions.includes('network'), load }
  return defineTool({
    name,
    description,
    input: v.object({ input: v.pipe(v.string(), v.description(inputDescription(manifest))) }),
    risk: hosts.length > 0 ? 'execute' : 'read',
    run: (given, { signal }) => threads.run(callable, given.input, { signal, ask }),
  })
}
