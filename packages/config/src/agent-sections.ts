/** The configuration sections of the agent. */
import { AGENT_NAME, fromEnv, headerSecret, httpUrl, MAIN_AGENT, MEDIA_KINDS, whole } from '@sluice/sdk'
import * as v from 'valibot'

const text = v.pipe(v.string(), v.minLength(1))
const listOf = (meaning: string) => v.pipe(v.array(v.string()), v.description(meaning))
const count = (fallback: number, min: number, max: number, meaning: string) =>
  v.optional(v.pipe(whole(min, max), v.description(meaning)), fallback)
const dollars = (meaning: string) => v.pipe(v.number(), v.minValue(0), v.description(meaning))

const KIND =
  'Provider of the model: openai, anthropic, ollama, groq, cerebras, deepseek, mistral, xai, together, openrouter, google, azure, bedrock, lmstudio, vllm, llamacpp or offline; openai with a base_url is any OpenAI-compatible server'
const BASE_URL = "Address of the endpoint; the provider's own by default"
const MODEL = 'Name of the model'
const headers = v.pipe(v.record(v.string(), headerSecret()), v.description('Further request headers'))

/** What one endpoint does differently: its requests, and the limits of `[agent]` that it overrides. */
const endpointKeys = {
  options: v.optional(
    v.pipe(
      v.record(v.string(), v.unknown()),
      v.description('Members added to the body of each request, as the API of the provider names them; tables are merged'),
    ),
  ),
  tools: v.optional(v.pipe(v.boolean(), v.description('Whether the model is offered tools (default: true)'))),
  reasoning_effort: v.optional(
    v.pipe(
      v.picklist(['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max']),
      v.description("How much the model reasons (default: the provider's own)"),
    ),
  ),
  prompt_cache: v.optional(
    v.pipe(
      v.boolean(),
      v.description('Whether Anthropic keeps the conversation for five minutes, so that it costs less again (default: true)'),
    ),
  ),
  media: v.optional(
    v.pipe(
      v.array(v.picklist(MEDIA_KINDS)),
      v.description(
        'Files of messages that the model gets itself, not only their paths (default: image and pdf at OpenAI and Anthropic, and audio too at Google)',
      ),
    ),
  ),
  max_output_tokens: v.optional(v.pipe(whole(1, 1_000_000), v.description('Overrides [agent] max_output_tokens'))),
  max_history_tokens: v.optional(v.pipe(whole(100, 10_000_000), v.description('Overrides [agent] max_history_tokens'))),
  model_timeout_secs: v.optional(v.pipe(whole(1, 3600), v.description('Overrides [agent] model_timeout_secs'))),
  max_retries: v.optional(v.pipe(whole(0, 10), v.description('Overrides [agent] max_retries'))),
  temperature: v.optional(v.pipe(v.number(), v.minValue(0), v.maxValue(2), v.description('Overrides [agent] temperature'))),
}

const fallbackEntry = v.object({
  kind: v.pipe(text, v.description(KIND)),
  base_url: v.optional(v.pipe(httpUrl(), v.description(BASE_URL))),
  api_key: v.optional(v.pipe(headerSecret(), v.description('Key of the endpoint'))),
  model: v.optional(v.pipe(text, v.description(MODEL))),
  headers: v.optional(headers),
  ...endpointKeys,
})

const withoutKind = (key: string): string =>
  `${key} is set without kind: set provider.kind in the same step, to openai, anthropic or another kind`
const withoutAgentKind = (key: string): string =>
  `${key} is set without kind: set kind in the same table, to openai, anthropic or another kind`

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
      ...endpointKeys,
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
          'Prices by `provider/model`, by model, or by the part of the model after its last slash; a model without a price costs nothing',
        ),
      ),
      {},
    ),
  }),
} as const

const COMMANDS = 'git npm cargo ls cat grep find echo pwd wc head tail date python3 node'.split(' ')
const PATHS = ['~/.ssh', '~/.gnupg', '~/.aws', '~/.config', '/etc/shadow', '/proc', '/sys', '/dev']

const policyLevel = v.pipe(
  v.picklist(['readonly', 'supervised', 'full']),
  v.description(
    'readonly: tools change nothing. supervised: a person approves calls that have effects outside of the workspace. full: no approval, except for tools that always ask',
  ),
)
const allowedCommands = listOf(
  'Programs that the shell tool may start; * allows every program. Only a sandbox confines them. Arguments that are not known to be harmless need an approval, also with auto_approve',
)
const forbiddenPaths = listOf('Paths that no tool may touch')
const autoApprove = listOf('Tools whose calls need no approval; * for all')
const alwaysAsk = listOf('Tools whose calls always need an approval below level full; overrides auto_approve')

/** `[security.policy]`: the tool calls that the agent may make. One policy applies to all clients of an agent. */
export const policySection = {
  path: 'security.policy',
  schema: v.object({
    level: v.optional(policyLevel, 'supervised'),
    allowed_commands: v.optional(allowedCommands, COMMANDS),
    forbidden_paths: v.optional(forbiddenPaths, PATHS),
    auto_approve: v.optional(autoApprove, []),
    always_ask: v.optional(alwaysAsk, []),
  }),
} as const

const agentEntry = v.object({
  system_prompt: v.optional(v.pipe(v.string(), v.description('Text at the start of the system prompt (default: that of [agent])'))),
  workspace: v.optional(
    v.pipe(
      text,
      v.description(
        'The folder that its tools work in, apart from those of other agents (default: workspaces/<name> in the data directory)',
      ),
    ),
  ),
  tools: v.optional(listOf('The only tools that it may call (default: all)')),
  provider: v.optional(
    v.pipe(
      v.object({
        kind: v.optional(v.pipe(text, v.description(`${KIND}. With it, nothing is taken from [provider]`))),
        base_url: v.optional(v.pipe(httpUrl(), v.description(BASE_URL))),
        api_key: v.optional(v.pipe(headerSecret(), v.description('Key of the endpoint'))),
        model: v.optional(v.pipe(text, v.description(MODEL))),
        headers: v.optional(headers),
        ...endpointKeys,
        fallback: v.optional(v.pipe(v.array(fallbackEntry), v.maxLength(8), v.description('Further models, as in [provider]'))),
      }),
      v.check(({ kind, api_key }) => kind !== undefined || api_key === undefined, withoutAgentKind('api_key')),
      v.check(({ kind, base_url }) => kind !== undefined || base_url === undefined, withoutAgentKind('base_url')),
      v.description('Its model. Absent keys are taken from [provider]'),
    ),
  ),
  policy: v.optional(
    v.pipe(
      v.object({
        level: v.optional(policyLevel),
        allowed_commands: v.optional(allowedCommands),
        forbidden_paths: v.optional(forbiddenPaths),
        auto_approve: v.optional(autoApprove),
        always_ask: v.optional(alwaysAsk),
      }),
      v.description('Its policy. Absent keys are taken from [security.policy]'),
    ),
  ),
})

/** `[agents.<name>]`: further agents. The main agent is `[agent]`. */
export const agentsSection = {
  path: 'agents',
  schema: v.record(
    v.pipe(
      v.string(),
      v.check((name) => name !== MAIN_AGENT, 'main is the default agent, which [agent], [provider] and [security.policy] configure'),
      v.regex(AGENT_NAME, 'the name of an agent has 1 to 32 characters of a-z 0-9 -'),
    ),
    agentEntry,
  ),
} as const

/** The keys of the core in the section of a channel. They name the agents that answer its messages. */
export const routingSchema = v.object({
  agent: v.optional(v.pipe(text, v.description('The agent that answers; one of [agents.<name>], or main')), MAIN_AGENT),
  account_agents: v.optional(
    v.pipe(v.record(text, text), v.description('The agent of single accounts, by the id of the account; overrides agent')),
    {},
  ),
  room_agents: v.optional(
    v.pipe(
      v.record(text, text),
      v.description('The agent of single conversations, by the id of the conversation; overrides account_agents'),
    ),
    {},
  ),
})

export type ProviderConfig = v.InferOutput<typeof providerSection.schema>
export type AgentConfig = v.InferOutput<typeof agentSection.schema>
export type CostConfig = v.InferOutput<typeof costSection.schema>
