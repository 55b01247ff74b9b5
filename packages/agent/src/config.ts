/** The agent's own configuration sections. */
import { fromEnv, secretText, whole } from '@sluice/sdk'
import * as v from 'valibot'

const providerKeys = {
  kind: v.pipe(v.string(), v.minLength(1)),
  base_url: v.optional(v.pipe(v.string(), v.url())),
  api_key: v.optional(secretText()),
  model: v.optional(v.pipe(v.string(), v.minLength(1))),
  headers: v.optional(v.record(v.string(), v.string())),
}

/** `[provider]`: which model answers. Without `kind`, one the environment offers is taken, else the offline one. */
export const providerSection = {
  path: 'provider',
  schema: v.object({
    kind: v.optional(v.pipe(v.string(), v.minLength(1), fromEnv('SVC_PROVIDER_KIND'))),
    base_url: v.optional(v.pipe(v.string(), v.url(), fromEnv('SVC_PROVIDER_BASE_URL'))),
    api_key: v.optional(secretText({ env: ['SVC_PROVIDER_API_KEY'], envWins: true })),
    model: v.optional(v.pipe(v.string(), v.minLength(1), fromEnv('SVC_PROVIDER_MODEL'))),
    headers: v.optional(v.record(v.string(), v.string())),
    fallback: v.optional(v.pipe(v.array(v.object(providerKeys)), v.maxLength(8)), []),
  }),
} as const

/** `[agent]`: the bounds of a turn. */
export const agentSection = {
  path: 'agent',
  schema: v.object({
    workspace: v.optional(v.pipe(v.string(), v.minLength(1), fromEnv('SVC_WORKSPACE'))),
    system_prompt: v.optional(v.string(), ''),
    max_iterations: v.optional(whole(1, 100), 10),
    max_concurrent_turns: v.optional(whole(1, 1024), 8),
    max_queued_turns: v.optional(whole(0, 100_000), 1000),
    /** From its start to its answer, approvals included. */
    turn_timeout_secs: v.optional(whole(1, 86_400), 300),
    /** To the next piece of a reply that is streamed, and to all of one that nobody listens to. */
    model_timeout_secs: v.optional(whole(1, 3600), 120),
    /** Of each entry of the model chain. */
    max_retries: v.optional(whole(0, 10), 2),
    max_output_tokens: v.optional(whole(1, 1_000_000)),
    max_turn_tokens: v.optional(whole(1, 100_000_000), 200_000),
    max_history_messages: v.optional(whole(2, 10_000), 50),
    /** Of the whole conversation a model is told, at four characters a token. */
    max_history_tokens: v.optional(whole(100, 10_000_000), 32_000),
    max_tool_result_chars: v.optional(whole(100, 10_000_000), 50_000),
    temperature: v.optional(v.pipe(v.number(), v.minValue(0), v.maxValue(2))),
  }),
} as const

/** `[cost]`: prices in US dollars for a million tokens, and what may be spent. */
export const costSection = {
  path: 'cost',
  schema: v.object({
    daily_limit_usd: v.optional(v.pipe(v.number(), v.minValue(0))),
    monthly_limit_usd: v.optional(v.pipe(v.number(), v.minValue(0))),
    prices: v.optional(
      v.record(v.string(), v.object({ input: v.pipe(v.number(), v.minValue(0)), output: v.pipe(v.number(), v.minValue(0)) })),
      {},
    ),
  }),
} as const

/** `[security.policy]`: what the agent may do (one per agent, whoever the client is). */
export const policySection = {
  path: 'security.policy',
  schema: v.object({
    level: v.optional(v.picklist(['readonly', 'supervised', 'full']), 'supervised'),
    allowed_commands: v.optional(v.array(v.string()), [
      'git',
      'npm',
      'cargo',
      'ls',
      'cat',
      'grep',
      'find',
      'echo',
      'pwd',
      'wc',
      'head',
      'tail',
      'date',
      'python3',
      'node',
    ]),
    forbidden_paths: v.optional(v.array(v.string()), ['~/.ssh', '~/.gnupg', '~/.aws', '~/.config', '/etc/shadow', '/proc', '/sys', '/dev']),
    auto_approve: v.optional(v.array(v.string()), []),
    always_ask: v.optional(v.array(v.string()), []),
  }),
} as const

export type ProviderConfig = v.InferOutput<typeof providerSection.schema>
export type AgentConfig = v.InferOutput<typeof agentSection.schema>
export type CostConfig = v.InferOutput<typeof costSection.schema>
