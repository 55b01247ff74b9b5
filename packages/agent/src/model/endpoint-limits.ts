/** The limits of the current model: the limits of `[agent]`, unless its endpoint overrides them. */
import type { AgentConfig } from '@sluice/config'
import type { MediaKind, ProviderSettings } from '@sluice/sdk'
import type { HistoryLimits } from '../history/history.ts'
import type { TurnScope } from '../turn/turn-scope.ts'

/** At most this many messages of a session are read, where `max_history_messages` is not set. */
const MESSAGES_READ_MAX = 4000
/** The part of the window, without the room for the reply, that a conversation may fill. */
const FILLED_SHARE = 0.8
/** The room for a reply whose length is not limited. */
const OUTPUT_TOKENS = 8192
const OUTPUT_SHARE = 1 / 4
/** Tools leave at least this part of a small window to the conversation. */
const CONVERSATION_SHARE_MIN = 1 / 4

export interface EndpointLimits {
  readonly max_output_tokens: number | undefined
  /** The limit of the conversation that the file sets. */
  readonly max_history_tokens: number | undefined
  readonly model_timeout_secs: number
  readonly max_retries: number
  readonly temperature: number | undefined
  readonly reasoning: ProviderSettings['reasoning_effort']
  /** The kinds of files that the model gets. */
  readonly media: readonly MediaKind[]
  /** Whether the model is offered tools. */
  readonly tools: boolean
}

export const endpointLimits = ({ agent, registry, progress }: TurnScope): EndpointLimits =>
  limitsOf(agent, registry.models.settings(progress.entry) ?? {})

/** Returns what the current model gets of a conversation, in estimated tokens. */
export function windowOf(scope: TurnScope): HistoryLimits {
  const { agent, registry, progress } = scope
  const { entry, shortened, fixedTokens, tokenRatio } = progress
  const { max_history_tokens, max_output_tokens } = endpointLimits(scope)
  const { tokens } = registry.models.window(entry)
  const forReply = max_output_tokens ?? Math.min(OUTPUT_TOKENS, tokens * OUTPUT_SHARE)
  const filled = Math.max((FILLED_SHARE * (tokens - forReply)) / tokenRatio - fixedTokens, tokens * CONVERSATION_SHARE_MIN)
  const limits = [
    filled,
    max_history_tokens,
    registry.models.learntTokens(entry),
    shortened?.entry === entry ? shortened.tokens : undefined,
  ]
  return {
    messagesMax: agent.max_history_messages ?? MESSAGES_READ_MAX,
    tokensMax: Math.floor(Math.min(...limits.filter((limit) => limit !== undefined))),
  }
}

/** Returns the limits of `[agent]`, overridden by the settings of an endpoint. */
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
