/** The sections of the main agent: the limits of its turns, and what they may cost. */
import { isTimezone } from '@sluice/kit/timezone'
import { fromEnv, isAtLeast, type Standing, whole } from '@sluice/sdk'
import * as v from 'valibot'

const text = v.pipe(v.string(), v.minLength(1))
const count = (fallback: number, min: number, max: number, meaning: string) =>
  v.optional(v.pipe(whole(min, max), v.description(meaning)), fallback)
/** A key without a default in the file, because its default depends on the standing of the turn or on the model. */
const unset = (min: number, max: number, meaning: string) => v.optional(v.pipe(whole(min, max), v.description(meaning)))
const dollars = (meaning: string) => v.pipe(v.number(), v.minValue(0), v.description(meaning))

/** `[agent]`: the limits of a turn. */
export const agentSection = {
  path: 'agent',
  schema: v.object({
    workspace: v.optional(
      v.pipe(text, fromEnv('SVC_WORKSPACE'), v.description('The folder that tools work in (default: workspace in the data directory)')),
    ),
    system_prompt: v.optional(v.pipe(v.string(), v.description('Text at the start of the system prompt')), ''),
    identity_sha256: v.optional(
      v.pipe(
        v.array(v.pipe(v.string(), v.regex(/^[0-9a-f]{64}$/, 'must be a whole SHA-256: 64 digits of 0-9 a-f'))),
        v.maxLength(16),
        v.description(
          'The SHA-256 of each file IDENTITY.md, SOUL.md and AGENTS.md of the workspace that the system prompt contains; a file with another content is left out',
        ),
      ),
      [],
    ),
    max_iterations: unset(
      1,
      1000,
      'The largest number of model calls with tools in one turn; then the model says what is left to do (default: 100, and 10 for strangers)',
    ),
    timezone: v.optional(
      v.pipe(
        text,
        v.check(isTimezone, 'must be a time zone such as Europe/Berlin'),
        v.description('The time zone of the times that the model is told (default: that of the machine)'),
      ),
    ),
    max_concurrent_turns: count(8, 1, 1024, 'The largest number of turns that run at once; turns of one session never do'),
    max_queued_turns: count(1000, 0, 100_000, 'The largest number of waiting turns; one more is answered 503'),
    turn_timeout_secs: unset(
      1,
      86_400,
      'The longest time of a turn in seconds, from its start to its answer; waiting for an approval does not count (default: 3600, and 300 for strangers)',
    ),
    step_timeout_secs: unset(
      1,
      86_400,
      'The longest time of one tool call in a turn, and of a direct call, in seconds (default: turn_timeout_secs if it is set, otherwise 300)',
    ),
    model_timeout_secs: count(
      120,
      1,
      3600,
      'Seconds until the next piece of a streamed reply, or until a whole reply that is not streamed',
    ),
    max_retries: count(2, 0, 10, 'Retries of a failed model call, for the provider and each fallback'),
    max_output_tokens: v.optional(
      v.pipe(whole(1, 1_000_000), v.description('The largest number of tokens in one reply (default: the limit of the provider)')),
    ),
    max_turn_tokens: unset(
      1,
      100_000_000,
      'The largest number of tokens in all model calls of one turn, without input that comes from the prompt cache (default: 1000000, and 200000 for strangers)',
    ),
    max_history_messages: unset(
      2,
      10_000,
      'The largest number of earlier messages of a session that the model gets (default: as many as the window takes)',
    ),
    max_history_tokens: unset(
      100,
      10_000_000,
      'The largest estimated number of tokens of the conversation that the model gets (default: by context_window of the endpoint)',
    ),
    summarize_history: v.optional(
      v.pipe(
        v.boolean(),
        v.description(
          'Whether the model summarises the oldest messages of a conversation that outgrows its window; otherwise it does not get them',
        ),
      ),
      true,
    ),
    max_tool_result_chars: unset(
      100,
      10_000_000,
      'The largest tool result in characters; of a longer one the model gets the beginning and the end (default: by the window of the model)',
    ),
    temperature: v.optional(
      v.pipe(v.number(), v.minValue(0), v.maxValue(2), v.description("Sampling temperature (default: the provider's own)")),
    ),
  }),
} as const

/** `[cost]`: prices in US dollars for a million tokens, and spending limits. */
export const costSection = {
  path: 'cost',
  schema: v.object({
    daily_limit_usd: v.optional(dollars('Spending limit of a day (UTC); beyond it model calls are refused until the next day')),
    monthly_limit_usd: v.optional(dollars('Spending limit of a month (UTC)')),
    prices: v.optional(
      v.pipe(
        v.record(
          v.string(),
          v.object({
            input: dollars('A million input tokens'),
            output: dollars('A million output tokens'),
            cache_read: v.optional(dollars('A million input tokens that come from the prompt cache (default: input)')),
            cache_write: v.optional(dollars('A million input tokens that are stored in the prompt cache (default: input)')),
          }),
        ),
        v.description(
          'Prices by `provider/model`, by model, or by the part of the model after its last slash; a model without a price costs nothing, unless `unknown_usd_per_million` is set',
        ),
      ),
      {},
    ),
    unknown: v.optional(
      v.pipe(
        v.picklist(['count', 'refuse']),
        v.description(
          'A model without a price, where a limit in dollars is set: `count` (default) counts it by `unknown_usd_per_million`, `refuse` does not ask it. Models of this machine are asked',
        ),
      ),
    ),
    unknown_usd_per_million: v.optional(dollars('The price of a million tokens of a model without a price of its own (default: 0)')),
  }),
} as const

export type AgentConfig = v.InferOutput<typeof agentSection.schema>
/** The limits of one turn. */
export interface TurnLimits {
  readonly steps: number
  /** Output tokens, and input tokens that do not come from the prompt cache. */
  readonly tokens: number
  readonly turnSecs: number
  readonly stepSecs: number
}

const DEFAULTS: TurnLimits = { steps: 100, tokens: 1_000_000, turnSecs: 3600, stepSecs: 300 }
const DEFAULTS_OF_STRANGERS: TurnLimits = { steps: 10, tokens: 200_000, turnSecs: 300, stepSecs: 300 }

/** Returns the limits of a turn of this standing. A limit that the file sets holds for every standing. */
export function turnLimits(agent: AgentConfig, standing: Standing): TurnLimits {
  const defaults = isAtLeast(standing, 'listed') ? DEFAULTS : DEFAULTS_OF_STRANGERS
  return {
    steps: agent.max_iterations ?? defaults.steps,
    tokens: agent.max_turn_tokens ?? defaults.tokens,
    turnSecs: agent.turn_timeout_secs ?? defaults.turnSecs,
    stepSecs: agent.step_timeout_secs ?? agent.turn_timeout_secs ?? defaults.stepSecs,
  }
}

export type CostConfig = v.InferOutput<typeof costSection.schema>
