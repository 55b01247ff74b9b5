/** The limits of the current model: those of `[agent]`, unless its endpoint overrides them. */
import type { AgentConfig } from '@sluice/config'
import type { MediaKind, ProviderSettings } from '@sluice/sdk'
import type { HistoryLimits } from '../history/history.ts'
import type { TurnScope } from '../turn/turn-scope.ts'

export interface EndpointLimits {
  readonly max_output_tokens: number | undefined
  readonly max_history_tokens: number
  readonly model_timeout_secs: number
  readonly max_retries: number
  readonly temperature: number | undefined
  readonly reasoning: ProviderSettings['reasoning_effort']
  /** The kinds of files that the model gets. */
  readonly media: readonly MediaKind[]
  /** Whether the model is offered tools. */
  readonly tools: boolean
}

export function endpointLimits({ agent, registry, progress }: TurnScope): EndpointLimits {
  const limits = limitsOf(agent, registry.models.settings(progress.entry) ?? {})
  const { entry, shortened } = progress
  const learnt = registry.models.window(entry) ?? Number.POSITIVE_INFINITY
  const window = Math.min(learnt, shortened?.entry === entry ? shortened.tokens : learnt)
  return window < limits.max_history_tokens ? { ...limits, max_history_tokens: window } : limits
}

/** Returns the window of the current model: what it gets of a conversation. */
export const windowOf = (scope: TurnScope): HistoryLimits => ({
  messagesMax: scope.agent.max_history_messages,
  tokensMax: endpointLimits(scope).max_history_tokens,
})

/** Returns the limits of `[agent]` with those that the settings of an endpoint override. */
export const limitsOf = (agent: AgentConfig, own: Partial<ProviderSettings>): EndpointLimits => ({
  max_output_tokens: own.max_output_tokens ?? agent.max_output_tokens,
  max_history_tokens: own.max_history_tokens ?? agent.max_history_tokens,
  model_timeout_secs: own.model_timeout_secs ?? agent.model_timeout_secs,
  max_retries: own.max_retries ?? agent.max_retries,
  temperature: own.temperature ?? agent.temperature,
  reasoning: own.reasoning_effort,
  media: own.media ?? [],
  tools: own.tools ?? true,
})
