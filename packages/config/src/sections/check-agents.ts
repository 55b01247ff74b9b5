/** Checks the agents against each other and against the machine: their workspaces, and the channels that name them. */
import { stat } from 'node:fs/promises'
import { isWithin, nearestName, withoutLinks } from '@sluice/kit'
import { type Feature, MAIN_AGENT } from '@sluice/sdk'
import { formatKeyPath, type KeyPath } from '../toml/key-path.ts'
import type { Finding } from '../toml/problem.ts'
import type { LoadedConfig } from '../types.ts'
import { agentNames, configuredAgents, routingSections } from './configured-agents.ts'

const workspaceKey = (agent: string): KeyPath => (agent === MAIN_AGENT ? ['agent', 'workspace'] : ['agents', agent, 'workspace'])

/** Finds workspaces that are files, and workspaces of two agents of which one contains the other. */
export async function workspaceFindings(config: LoadedConfig, dataDir: string): Promise<Finding[]> {
  const agents = [...configuredAgents(config, dataDir).values()]
  const findings: Finding[] = []
  const checked: { readonly name: string; readonly real: string }[] = []
  for (const { name, workspace } of agents) {
    const path = workspaceKey(name)
    const add = (problem: string): void => void findings.push({ path, at: 'value', message: `\`${formatKeyPath(path)}\` ${problem}` })
    const found = await stat(workspace).catch(() => undefined)
    if (found && !found.isDirectory()) add(`must be a folder, but ${workspace} is a file`)
    const real = await withoutLinks(workspace)
    const other = checked.find((one) => isWithin(real, one.real) || isWithin(one.real, real))
    if (other) {
      const how = other.real === real ? 'is also' : isWithin(real, other.real) ? 'is inside' : 'contains'
      add(`${workspace} ${how} the workspace of agent ${other.name}, so the two could read each other's files; set it to another folder`)
    }
    checked.push({ name, real })
  }
  return findings
}

/** Finds agents that the sections of channels name and that do not exist. */
export function routingFindings(config: LoadedConfig, features: readonly Feature[]): Finding[] {
  const names = agentNames(config)
  return routingSections(features).flatMap((section) => {
    const { agent, account_agents, room_agents } = config.core(section)
    const named: (readonly [KeyPath, string])[] = [
      [['agent'], agent],
      ...Object.entries(account_agents).map(([account, name]) => [['account_agents', account], name] as const),
      ...Object.entries(room_agents).map(([room, name]) => [['room_agents', room], name] as const),
    ]
    return named.flatMap(([keys, name]) => {
      if (names.includes(name)) return []
      const path = [...section.path.split('.'), ...keys]
      return [{ path, at: 'value', message: `\`${formatKeyPath(path)}\`: ${unknownAgent(name, names)}` } as const]
    })
  })
}

/** Returns the sentence for the name of an agent that does not exist. */
export function unknownAgent(name: string, names: readonly string[]): string {
  const near = nearestName(name, names)
  const meant = near === undefined ? '' : `; did you mean "${near}"?`
  return `there is no agent "${name}"${meant || '.'} The agents are ${names.join(', ')}. [agents.<name>] adds one`
}
