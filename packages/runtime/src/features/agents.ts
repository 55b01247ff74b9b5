/** The agents in force: what each may do, where it works, and the model that it asks. */
import { getCompileCacheDir } from 'node:module'
import type { AgentSettings } from '@sluice/agent'
import { type ConfiguredAgent, configuredAgents, costSection, expandHome, type LoadedConfig } from '@sluice/config'
import { filesFolder } from '../workspace/owned-places.ts'
import { createWorkspace } from '../workspace/workspace.ts'

export interface AgentInForce extends AgentSettings, Pick<ConfiguredAgent, 'name' | 'provider'> {}

/** The agents by name, `main` first. */
export type AgentsInForce = ReadonlyMap<string, AgentInForce>

export interface AgentSources {
  readonly dataDir: string
  readonly configFile: string
}

/** The folders from which the daemon reads keys, settings or code. */
export const closedFolders = (dataDir: string): readonly string[] => [dataDir, getCompileCacheDir() ?? []].flat()

/** Makes the agents of a configuration. No agent may touch the daemon's own files, nor the workspaces of the other agents. */
export function createAgents(config: LoadedConfig, { dataDir, configFile }: AgentSources): AgentsInForce {
  const configured = [...configuredAgents(config, dataDir).values()]
  const cost = config.core(costSection)
  const agents = configured.map(({ name, agent, provider, policy, tools, workspace: root }): AgentInForce => {
    const others = configured.flatMap((other) => (other.name === name ? [] : [other.workspace]))
    const forbidden = [...policy.forbidden_paths, ...closedFolders(dataDir), configFile, ...others]
    return {
      name,
      agent,
      cost,
      provider,
      policy: Object.freeze({ ...policy, forbidden_paths: forbidden }),
      tools,
      workspace: createWorkspace({ root, forbidden: forbidden.map(expandHome), files: filesFolder(dataDir, name) }),
    }
  })
  return new Map(agents.map((agent) => [agent.name, agent]))
}
