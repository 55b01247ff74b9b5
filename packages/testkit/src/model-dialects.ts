/** How services with the chat completions API differ, as data for the model server. Each service has its own base URL on the server. */

type ChatBody = Readonly<Record<string, unknown>> & { readonly messages: readonly Readonly<Record<string, unknown>>[] }

export interface ChatDialect {
  /** Members of a request that the service knows. It refuses all others. */
  readonly members: readonly string[]
  /** Members of an assistant message, besides `role`, `content`, `name` and `tool_calls`. */
  readonly messageMembers: readonly string[]
  /** Status and body of the refusal of a member, which is named by its path. */
  refuse(path: readonly (string | number)[]): { readonly status: number; readonly body: unknown }
  /** Returns the refusal of a request for another reason than an unknown member. */
  problem?(body: ChatBody): { readonly status: number; readonly body: unknown } | undefined
  /** Whether a stream counts its tokens without being asked. */
  readonly alwaysCounts?: boolean
}

const COMMON = ['model', 'messages', 'tools', 'tool_choice', 'stream', 'temperature', 'top_p', 'stop', 'seed', 'response_format', 'n']
const PENALTIES = ['frequency_penalty', 'presence_penalty']

const invalid = (message: string, more: object = {}) => ({
  status: 400,
  body: { error: { message, type: 'invalid_request_error', ...more } },
})

const deepseekRefusal = (reason: string) =>
  invalid(`Failed to deserialize the JSON body into the target type: ${reason}`, { param: null, code: 'invalid_request_error' })

/**
 * DeepSeek knows no role `developer`. It thinks unless `thinking` turns that off, and then wants the reasoning of each message with tool
 * calls, in all further requests. The wording of the refusal is that of https://github.com/earendil-works/pi/issues/3636.
 */
function deepseekProblem({ messages, thinking }: ChatBody) {
  const developer = messages.findIndex(({ role }) => role === 'developer')
  if (developer >= 0)
    return deepseekRefusal(
      `messages[${developer}].role: unknown variant \`developer\`, expected one of \`system\`, \`user\`, \`assistant\`, \`tool\``,
    )
  const thinks = (thinking as { type?: string } | undefined)?.type !== 'disabled'
  const isBare = messages.some(({ tool_calls, reasoning_content }) => tool_calls !== undefined && !reasoning_content)
  const message = 'The `reasoning_content` in the thinking mode must be passed back to the API.'
  return thinks && isBare ? invalid(message, { param: null, code: 'invalid_request_error' }) : undefined
}

export const CHAT_DIALECTS: Readonly<Record<string, ChatDialect>> = {
  // Members: https://platform.openai.com/docs/api-reference/chat/create. Refusal: `Unrecognized request argument supplied: …`.
  '': {
    members: [
      ...COMMON,
      ...PENALTIES,
      'max_tokens',
      'max_completion_tokens',
      'stream_options',
      'reasoning_effort',
      'verbosity',
      'parallel_tool_calls',
      'store',
      'metadata',
      'user',
      'service_tier',
      'prompt_cache_key',
      'logit_bias',
      'logprobs',
      'top_logprobs',
      'modalities',
      'prediction',
      'safety_identifier',
    ],
    // The server also imitates local servers, which accept either member.
    messageMembers: ['refusal', 'audio', 'reasoning', 'reasoning_content'],
    refuse: (path) => invalid(`Unrecognized request argument supplied: ${path.join('.')}`, { param: null, code: null }),
  },
  // https://console.groq.com/docs/api-reference#chat-create; the wording is that of https://github.com/vercel/ai/issues/10230.
  groq: {
    members: [
      ...COMMON,
      ...PENALTIES,
      'max_tokens',
      'max_completion_tokens',
      'stream_options',
      'reasoning_effort',
      'reasoning_format',
      'user',
    ],
    messageMembers: ['reasoning'],
    refuse: (path) => invalid(`property '${path.at(-1)}' is unsupported, did you mean 'reasoning'?`, { param: path.join('.') }),
  },
  // https://inference-docs.cerebras.ai/api-reference/chat-completions
  cerebras: {
    members: [...COMMON, 'max_completion_tokens', 'stream_options', 'reasoning_effort', 'parallel_tool_calls', 'user'],
    messageMembers: ['reasoning'],
    refuse: (path) => ({
      status: 422,
      body: { message: `body.${path.join('.')}: Extra inputs are not permitted`, type: 'invalid_request_error', code: 'wrong_api_format' },
    }),
  },
  // https://openrouter.ai/docs/api-reference/chat-completion and https://openrouter.ai/docs/use-cases/reasoning-tokens
  openrouter: {
    members: [
      ...COMMON,
      ...PENALTIES,
      'max_tokens',
      'stream_options',
      'reasoning',
      'reasoning_effort',
      'provider',
      'models',
      'usage',
      'user',
    ],
    messageMembers: ['reasoning', 'reasoning_details'],
    refuse: (path) => ({ status: 400, body: { error: { code: 400, message: `Unrecognized key: ${path.join('.')}` } } }),
  },
  // https://docs.mistral.ai/api and https://github.com/BerriAI/litellm/issues/8978, https://github.com/charmbracelet/crush/issues/1590
  mistral: {
    members: [
      ...COMMON.filter((name) => name !== 'seed'),
      ...PENALTIES,
      'max_tokens',
      'random_seed',
      'reasoning_effort',
      'parallel_tool_calls',
    ],
    messageMembers: ['prefix'],
    alwaysCounts: true,
    refuse: (path) => {
      const detail = [{ type: 'extra_forbidden', loc: ['body', ...path], msg: 'Extra inputs are not permitted' }]
      return { status: 422, body: { object: 'error', message: { detail }, type: 'invalid_request_error', param: null, code: null } }
    },
  },
  // https://api-docs.deepseek.com/api/create-chat-completion, https://api-docs.deepseek.com/guides/thinking_mode and
  // https://github.com/earendil-works/pi/issues/1048. It deprecates penalties.
  deepseek: {
    members: [
      ...COMMON.filter((name) => name !== 'seed' && name !== 'n'),
      'max_tokens',
      'stream_options',
      'thinking',
      'reasoning_effort',
      'logprobs',
      'top_logprobs',
      'user_id',
    ],
    messageMembers: ['reasoning_content', 'prefix'],
    refuse: (path) => deepseekRefusal(`${path.join('.')}: unknown field`),
    problem: deepseekProblem,
  },
  // https://docs.x.ai/docs/api-reference#chat-completions, https://docs.x.ai/docs/guides/reasoning (no penalties and no `stop`); the
  // wording is that of https://github.com/yym68686/uni-api/issues/105. `max_tokens` is deprecated.
  xai: {
    members: [
      ...COMMON.filter((name) => name !== 'stop'),
      'max_completion_tokens',
      'stream_options',
      'reasoning_effort',
      'parallel_tool_calls',
      'logprobs',
      'top_logprobs',
      'user',
    ],
    messageMembers: ['reasoning_content'],
    refuse: (path) => ({
      status: 400,
      body: {
        code: 'Client specified an invalid argument',
        error: `Argument not supported on this model: ${path.join('.').replaceAll(/_(\w)/g, (_, letter) => letter.toUpperCase())}`,
      },
    }),
  },
  // https://docs.together.ai/reference/chat-completions-1
  together: {
    members: [
      ...COMMON,
      ...PENALTIES,
      'max_tokens',
      'stream_options',
      'top_k',
      'min_p',
      'repetition_penalty',
      'logprobs',
      'echo',
      'logit_bias',
      'reasoning',
      'reasoning_effort',
      'chat_template_kwargs',
      'safety_model',
      'context_length_exceeded_behavior',
    ],
    messageMembers: ['reasoning', 'reasoning_content'],
    refuse: (path) => invalid(`Input validation error: unknown field ${path.join('.')}`, { param: path.join('.'), code: null }),
  },
}

const MESSAGE_MEMBERS = ['role', 'content', 'name', 'tool_calls']

/** Returns the path of the first member that the service does not know. */
export function unknownMember(dialect: ChatDialect, body: unknown): readonly (string | number)[] | undefined {
  const request = body as ChatBody
  const member = Object.keys(request).find((name) => !dialect.members.includes(name))
  if (member !== undefined) return [member]
  const known = [...MESSAGE_MEMBERS, ...dialect.messageMembers]
  for (const [at, message] of request.messages.entries()) {
    const extra = message.role === 'assistant' ? Object.keys(message).find((name) => !known.includes(name)) : undefined
    if (extra !== undefined) return ['messages', at, 'assistant', extra]
  }
  return undefined
}
