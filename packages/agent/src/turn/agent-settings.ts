/** The settings of an agent: when its turn begins, and at each tool call. */
import type { AgentConfig, CostConfig } from '@sluice/config'
import { type AgentWorkspace, AppError, MAIN_AGENT, type Policy } from '@sluice/sdk'

/** What an agent may do, and where it works. */
export interface AgentLimits {
  readonly policy: Policy
  /** The only tools that it may call; undefined for all. */
  readonly tools: readonly string[] | undefined
  readonly workspace: AgentWorkspace
}

export interface AgentSettings extends AgentLimits {
  readonly agent: AgentConfig
  readonly cost: CostConfig
}

export interface SettingsSource {
  /** Returns the settings in force of an agent; undefined when it is not configured. The main agent always is. */
  readonly config: (agent: string) => AgentSettings | undefined
}

/** Returns a function for the limits in force. The agent stays in the workspace that it began in; its policy and tools may change. */
export function limitsInForce({ config }: SettingsSource, agent: string, begun: AgentWorkspace): () => AgentLimits | undefined {
  return () => {
    const now = config(agent)
    if (!now) return undefined
    const { policy, tools, workspace } = now
    return { policy, tools, workspace: workspace.root === begun.root ? workspace : begun }
  }
}

export function mainSettings({ config }: SettingsSource): AgentSettings {
  const settings = config(MAIN_AGENT)
  if (!settings) throw new AppError('internal', 'The main agent is not configured')
  return settings
}

/** Returns why a turn or a call of the agent fails. */
export const notConfigured = (agent: string): string =>
  `Agent "${agent}" was removed from the configuration. Add [agents.${agent}] to continue.`
