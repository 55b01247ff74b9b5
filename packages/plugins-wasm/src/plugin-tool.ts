/** Makes a tool of a plugin. */
import { defineTool, type Host, type Tool } from '@sluice/sdk'
import * as v from 'valibot'
import { inputDescription, type Manifest } from './manifest.ts'
import { pluginHttp } from './plugin-http.ts'
import type { PluginThreads } from './plugin-threads.ts'

export interface LoadedPlugin {
  readonly manifest: Manifest
  /** The hosts it may reach. Empty unless its manifest asks for the network and the operator granted hosts. */
  readonly hosts: readonly string[]
  /** Reads the module and checks it again. */
  load(): Promise<Uint8Array>
}

export function pluginTool({ manifest, hosts, load }: LoadedPlugin, threads: PluginThreads, publicFetch: Host['publicFetch']): Tool {
  const { name, description, permissions } = manifest
  const sendRequest = pluginHttp(publicFetch, hosts)
  const callable = { name, hasNetwork: permissions.includes('network'), load }
  return defineTool({
    name,
    description,
    input: v.object({ input: v.pipe(v.string(), v.description(inputDescription(manifest))) }),
    risk: hosts.length > 0 ? 'execute' : 'read',
    decider: 'asker',
    egress: hosts.length > 0,
    untrusted: () => `plugin ${name}`,
    run: ({ input }, { signal }) => threads.run(callable, input, { signal, sendRequest }),
  })
}
