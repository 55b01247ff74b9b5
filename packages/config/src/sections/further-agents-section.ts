/** The sections of further agents, and the keys with which a channel names the agents that answer. */
import { AGENT_NAME, headerSecret, httpUrl, MAIN_AGENT, whole } from '@sluice/sdk'
import * as v from 'valibot'
import { channelLimits } from './limits-section.ts'
import { agentSection } from './main-agent-sections.ts'
import {
  allowedCommands,
  alwaysAsk,
  askAfterUntrusted,
  autoApprove,
  forbiddenPaths,
  listOf,
  policyLevel,
  shellMode,
} from './policy-section.ts'
import { BASE_URL, endpointKeys, headers, KIND, MODEL, providerEndpoint } from './provider-section.ts'
import { resetKeys } from './reset-keys.ts'

const text = v.pipe(v.string(), v.minLength(1))

const withoutKind = (key: string): string => `${key} is set without kind: set kind in the same table, to openai, anthropic or another kind`

const limits = agentSection.schema.entries

const agentEntry = v.object({
  system_prompt: v.optional(v.pipe(v.string(), v.description('Text at the start of the system prompt (default: that of [agent])'))),
  identity_sha256: v.optional(limits.identity_sha256.wrapped),
  workspace: v.optional(
    v.pipe(
      text,
      v.description(
        'The folder that its tools work in, apart from those of other agents (default: workspaces/<name> in the data directory)',
      ),
    ),
  ),
  max_iterations: v.optional(limits.max_iterations.wrapped),
  turn_timeout_secs: v.optional(limits.turn_timeout_secs.wrapped),
  step_timeout_secs: v.optional(limits.step_timeout_secs.wrapped),
  max_turn_tokens: v.optional(limits.max_turn_tokens.wrapped),
  max_history_messages: v.optional(limits.max_history_messages.wrapped),
  summarize_history: v.optional(limits.summarize_history.wrapped),
  max_tool_result_chars: v.optional(limits.max_tool_result_chars.wrapped),
  tools: v.optional(listOf('The only tools that it may call (default: all)')),
  reset: v.optional(resetKeys),
  provider: v.optional(
    v.pipe(
      v.object({
        kind: v.optional(v.pipe(text, v.description(`${KIND}. With it, nothing is taken from [provider]`))),
        base_url: v.optional(v.pipe(httpUrl(), v.description(BASE_URL))),
        api_key: v.optional(v.pipe(headerSecret(), v.description('Key of the endpoint'))),
        model: v.optional(v.pipe(text, v.description(MODEL))),
        headers: v.optional(headers),
        ...endpointKeys,
        fallback: v.optional(v.pipe(v.array(providerEndpoint), v.maxLength(8), v.description('Further models, as in [provider]'))),
      }),
      v.check(({ kind, api_key }) => kind !== undefined || api_key === undefined, withoutKind('api_key')),
      v.check(({ kind, base_url }) => kind !== undefined || base_url === undefined, withoutKind('base_url')),
      v.description('Its model. Absent keys are taken from [provider]'),
    ),
  ),
  policy: v.optional(
    v.pipe(
      v.object({
        level: v.optional(policyLevel),
        shell: v.optional(shellMode),
        allowed_commands: v.optional(allowedCommands),
        forbidden_paths: v.optional(forbiddenPaths),
        auto_approve: v.optional(autoApprove),
        always_ask: v.optional(alwaysAsk),
        ask_after_untrusted: v.optional(askAfterUntrusted),
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

/** The keys of the core in the section of a channel: the agents that answer its messages, and the limits of its senders. */
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
  room_session: v.optional(
    v.pipe(
      v.picklist(['shared', 'person']),
      v.description(
        'Who shares a conversation in rooms, which have several people: shared gives each room one conversation for all of them, person gives each person a conversation of their own',
      ),
    ),
    'shared',
  ),
  overhear: v.optional(
    v.pipe(
      v.boolean(),
      v.description(
        'Whether messages in rooms that are not addressed to the bot are kept for a day, at most 50 in each room, so that the agent knows them when it is addressed',
      ),
    ),
    true,
  ),
  operators: v.optional(
    v.pipe(
      v.array(
        v.pipe(
          text,
          v.check((entry) => entry !== '*', 'must name a sender; * would make every sender an operator'),
        ),
      ),
      v.description(
        'The senders who are operators: they decide calls and procedures, and run commands without a sandbox. Each must be allowed too',
      ),
    ),
    [],
  ),
  reset: v.optional(resetKeys),
  batch_ms: v.optional(
    v.pipe(
      whole(0, 10_000),
      v.description(
        'Milliseconds that a message waits for the next one of the same person, which then joins its turn; 0: it waits for none, but for the pieces of an album or of a text that the app split. A message that comes while a turn of its writer runs joins that turn by `steering`, also with 0 (default: 1500 in groups; in direct chats none, but what is written before the model is called joins)',
      ),
    ),
  ),
  steering: v.optional(
    v.pipe(
      v.picklist(['steer', 'queue', 'interrupt']),
      v.description(
        'What becomes of messages that a person writes while the own turn runs. steer: the model reads them at its next step. queue: they wait. interrupt: the step that runs is broken off, and the turn goes on with them',
      ),
    ),
    'steer',
  ),
  limits: v.optional(v.pipe(channelLimits, v.description('Limits of its senders; absent keys are taken from [limits]'))),
})
