/** The configuration sections of the agent. */
import { fromEnv, headerSecret, httpUrl, whole } from '@sluice/sdk'
import * as v from 'valibot'

const text = v.pipe(v.string(), v.minLength(1))
const texts = (fallback: string[], meaning: string) => v.optional(v.pipe(v.array(v.string()), v.description(meaning)), fallback)
const count = (fallback: number, min: number, max: number, meaning: string) =>
  v.optional(v.pipe(whole(min, max), v.description(meaning)), fallback)
const dollars = (meaning: string) => v.pipe(v.number(), v.minValue(0), v.description(meaning))

const KIND = 'Wire format of the model: openai, anthropic, ollama or offline'
const BASE_URL = "Address of the endpoint; the provider's own by default"
const MODEL = 'Name of the model'
const headers = v.pipe(v.record(v.string(), headerSecret()), v.description('Further request headers'))

const fallbackEntry = v.object({
  kind: v.pipe(text, v.description(KIND)),
  base_url: v.optional(v.pipe(httpUrl(), v.description(BASE_URL))),
  api_key: v.optional(v.pipe(headerSecret(), v.description('Key of the endpoint'))),
  model: v.optional(v.pipe(text, v.description(MODEL))),
  headers: v.optional(headers),
})

const withoutKind = (key: string): string =>
  `${key} is set without kind: set provider.kind in the same step, to openai, anthropic or another kind`

/** `[provider]`: the model. Without `kind`, a provider whose key is in the environment is used, else the offline one. */
export const providerSection = {
  path: 'provider',
  schema: v.pipe(
    v.object({
      kind: v.optional(
        v.pipe(text, fromEnv('SVC_PROVIDER_KIND'), v.description(`${KIND}; by default the one whose key is in the environment`)),
      ),
      base_url: v.optional(v.pipe(httpUrl(), fromEnv('SVC_PROVIDER_BASE_URL'), v.description(BASE_URL))),
      api_key: v.optional(v.pipe(headerSecret({ env: ['SVC_PROVIDER_API_KEY'], envWins: true }), v.description('Key of the endpoint'))),
      model: v.optional(v.pipe(text, fromEnv('SVC_PROVIDER_MODEL'), v.description(MODEL))),
      headers: v.optional(headers),
      fallback: v.optional(
        v.pipe(v.array(fallbackEntry), v.maxLength(8), v.description('Further models, used in this order when the one before fails')),
        [],
      ),
    }),
    v.check(({ kind, api_key }) => kind !== undefined || api_key === undefined, withoutKind('api_key')),
    v.check(({ kind, base_url }) => kind !== undefined || base_url === undefined, withoutKind('base_url')),
  ),
} as const

/** `[agent]`: the limits of a turn. */
export const agentSection = {
  path: 'agent',
  schema: v.object({
    workspace: v.optional(
      v.pipe(text, fromEnv('SVC_WORKSPACE'), v.description('The folder that tools work in (default: workspace in the data directory)')),
    ),
    system_prompt: v.optional(v.pipe(v.string(), v.description('Text at the start of the system prompt')), ''),
    max_iterations: count(10, 1, 100, 'The largest number of model calls with tools in one turn; then the model is asked for a summary'),
    max_concurrent_turns: count(8, 1, 1024, 'The largest number of turns that run at once; turns of one session never do'),
    max_queued_turns: count(1000, 0, 100_000, 'The largest number of waiting turns; one more is answered 503'),
    turn_timeout_secs: count(
      300,
      1,
      86_400,
      'The longest time of a turn in seconds, from its start to its answer; waiting for an approval does not count',
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
    max_turn_tokens: count(200_000, 1, 100_000_000, 'The largest number of tokens in all model calls of one turn'),
    max_history_messages: count(50, 2, 10_000, 'The largest number of earlier messages of a session that the model gets'),
    max_history_tokens: count(
      32_000,
      100,
      10_000_000,
      'The largest number of tokens of the conversation that the model gets, at four characters a token',
    ),
    max_tool_result_chars: count(
      50_000,
      100,
      10_000_000,
      'The largest tool result in characters; of a longer one the model gets the beginning and the end',
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
        v.record(v.string(), v.object({ input: dollars('A million input tokens'), output: dollars('A million output tokens') })),
        v.description(
          'Prices by `provider/model`, by model, or by the part of the model after its last slash; a model without a price costs nothing',
        ),
      ),
      {},
    ),
  }),
} as const

/** `[security.policy]`: the tool calls that the agent may make. One policy applies to all clients of an agent. */
export const policySection = {
  path: 'security.policy',
  schema: v.object({
    level: v.optional(
      v.pipe(
        v.picklist(['readonly', 'supervised', 'full']),
        v.description(
          'readonly: tools change nothing. supervised: a person approves calls that have effects outside of the workspace. full: no approval, except for tools that always ask',
        ),
      ),
      'supervised',
    ),
    allowed_commands: texts(
      ['git', 'npm', 'cargo', 'ls', 'cat', 'grep', 'find', 'echo', 'pwd', 'wc', 'head', 'tail', 'date', 'python3', 'node'],
      'Programs that the shell tool may start; * allows every program. Only a sandbox confines them. Arguments that are not known to be harmless need an approval, also with auto_approve',
    ),
    forbidden_paths: texts(
      ['~/.ssh', '~/.gnupg', '~/.aws', '~/.config', '/etc/shadow', '/proc', '/sys', '/dev'],
      'Paths that no tool may touch',
    ),
    auto_approve: texts([], 'Tools whose calls need no approval; * for all'),
    always_ask: texts([], 'Tools whose calls always need an approval below level full; overrides auto_approve'),
  }),
} as const

export type ProviderConfig = v.InferOutput<typeof providerSection.schema>
export type AgentConfig = v.InferOutput<typeof agentSection.schema>
export type CostConfig = v.InferOutput<typeof costSection.schema>
