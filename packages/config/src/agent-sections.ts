/** The agent's own configuration sections. */
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
  api_key: v.optional(v.pipe(headerSecret(), v.description('Its key'))),
  model: v.optional(v.pipe(text, v.description(MODEL))),
  headers: v.optional(headers),
})

const withoutKind = (key: string): string =>
  `${key} is set without kind: set provider.kind in the same step, to openai, anthropic or another kind`

/** `[provider]`: which model answers. Without `kind`, one the environment offers is taken, else the offline one. */
export const providerSection = {
  path: 'provider',
  schema: v.pipe(
    v.object({
      kind: v.optional(v.pipe(text, fromEnv('SVC_PROVIDER_KIND'), v.description(`${KIND}; by default what the environment has a key for`))),
      base_url: v.optional(v.pipe(httpUrl(), fromEnv('SVC_PROVIDER_BASE_URL'), v.description(BASE_URL))),
      api_key: v.optional(v.pipe(headerSecret({ env: ['SVC_PROVIDER_API_KEY'], envWins: true }), v.description('Key of the endpoint'))),
      model: v.optional(v.pipe(text, fromEnv('SVC_PROVIDER_MODEL'), v.description(MODEL))),
      headers: v.optional(headers),
      fallback: v.optional(
        v.pipe(v.array(fallbackEntry), v.maxLength(8), v.description('Asked in this order when the one before fails')),
        [],
      ),
    }),
    v.check(({ kind, api_key }) => kind !== undefined || api_key === undefined, withoutKind('api_key')),
    v.check(({ kind, base_url }) => kind !== undefined || base_url === undefined, withoutKind('base_url')),
  ),
} as const

/** `[agent]`: the bounds of a turn. */
export const agentSection = {
  path: 'agent',
  schema: v.object({
    workspace: v.optional(
      v.pipe(text, fromEnv('SVC_WORKSPACE'), v.description("The folder tools work in (default: the data directory's workspace)")),
    ),
    system_prompt: v.optional(v.pipe(v.string(), v.description('Put before what features tell the model')), ''),
    max_iterations: count(10, 1, 100, 'Model calls with tools in one turn; then it is asked for a summary'),
    max_concurrent_turns: count(8, 1, 1024, 'Turns that run at once; those of one session never do'),
    max_queued_turns: count(1000, 0, 100_000, 'Turns that wait; one more is answered 503'),
    turn_timeout_secs: count(
      300,
      1,
      86_400,
      'The longest a turn may take, from its start to its answer; the time people take to agree to a call does not count',
    ),
    model_timeout_secs: count(120, 1, 3600, 'To the next piece of a streamed reply, and to all of another'),
    max_retries: count(2, 0, 10, 'Repeats of a failed model call, for each entry of the chain'),
    max_output_tokens: v.optional(v.pipe(whole(1, 1_000_000), v.description('Tokens of one reply (default: what the provider allows)'))),
    max_turn_tokens: count(200_000, 1, 100_000_000, 'Tokens of all model calls of one turn'),
    max_history_messages: count(50, 2, 10_000, 'Messages of a session the model is told'),
    max_history_tokens: count(32_000, 100, 10_000_000, 'Tokens of the whole conversation the model is told, at four characters a token'),
    max_tool_result_chars: count(50_000, 100, 10_000_000, 'Of a longer tool result the beginning and the end are kept'),
    temperature: v.optional(v.pipe(v.number(), v.minValue(0), v.maxValue(2), v.description("(default: the provider's own)"))),
  }),
} as const

/** `[cost]`: prices in US dollars for a million tokens, and what may be spent. */
export const costSection = {
  path: 'cost',
  schema: v.object({
    daily_limit_usd: v.optional(dollars('Model calls end for the day (UTC) once it is spent')),
    monthly_limit_usd: v.optional(dollars('The same for the month')),
    prices: v.optional(
      v.pipe(
        v.record(v.string(), v.object({ input: dollars('A million tokens in'), output: dollars('A million tokens out') })),
        v.description('US dollars, by `provider/model`, model, or what follows its last slash; a model without a price costs nothing'),
      ),
      {},
    ),
  }),
} as const

/** `[security.policy]`: what the agent may do (one per agent, whoever the client is). */
export const policySection = {
  path: 'security.policy',
  schema: v.object({
    level: v.optional(
      v.pipe(
        v.picklist(['readonly', 'supervised', 'full']),
        v.description(
          'readonly: tools only look. supervised: a person is asked before a tool reaches beyond the workspace. full: nobody is asked, but for tools that always ask',
        ),
      ),
      'supervised',
    ),
    allowed_commands: texts(
      ['git', 'npm', 'cargo', 'ls', 'cat', 'grep', 'find', 'echo', 'pwd', 'wc', 'head', 'tail', 'date', 'python3', 'node'],
      'Programs the shell tool may start; * allows any. No boundary: only a sandbox is one. Arguments that are not known to be harmless ask, auto_approve or not',
    ),
    forbidden_paths: texts(['~/.ssh', '~/.gnupg', '~/.aws', '~/.config', '/etc/shadow', '/proc', '/sys', '/dev'], 'Paths no tool touches'),
    auto_approve: texts([], 'Tools that never need a person; * for all'),
    always_ask: texts([], 'Tools that always need one, below full; wins over auto_approve'),
  }),
} as const

export type ProviderConfig = v.InferOutput<typeof providerSection.schema>
export type AgentConfig = v.InferOutput<typeof agentSection.schema>
export type CostConfig = v.InferOutput<typeof costSection.schema>
