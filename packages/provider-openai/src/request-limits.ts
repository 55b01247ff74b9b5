/** The parts of requests that a model does not support, learnt from an endpoint's refusal and remembered while the model is loaded. */

type Body = Readonly<Record<string, unknown>>

/** The limit as operators read it, at the end of `<model> …`. */
export interface RequestLimit {
  readonly label: string
  /** The words of the refusal: all words of one of the lists, in lower case. */
  readonly words: readonly (readonly string[])[]
  /** Whether the limit concerns a request. */
  concerns(body: Body): boolean
  /** Returns the request that keeps the limit. */
  keep(body: Body): Body
}

const without = (body: Body, ...names: readonly string[]): Body =>
  Object.fromEntries(Object.entries(body).filter(([name]) => !names.includes(name)))

const has = (name: string) => (body: Body) => body[name] !== undefined

const renamed = (body: Body, from: string, to: string): Body => ({ ...without(body, from), [to]: body[from] })

/** The words with which endpoints refuse a member that they do not know. */
const REFUSED = ['not permitted', 'not supported', 'unsupported', 'unrecognized'] as const

interface Message {
  readonly role?: unknown
  readonly content?: unknown
}

const listOf = (messages: unknown): readonly Message[] => (Array.isArray(messages) ? messages : [])
const isSystem = ({ role }: Message): boolean => role === 'system' || role === 'developer'

/** A text as the list of parts that it stands for. */
const partsOf = (content: unknown): readonly unknown[] => (Array.isArray(content) ? content : [{ type: 'text', text: content }])

/** Puts the text of system messages before that of the first message of the person. */
function withoutSystem(messages: readonly Message[]): readonly Message[] {
  const others = messages.filter((message) => !isSystem(message))
  const first = others.findIndex(({ role }) => role === 'user')
  const parts = messages.filter(isSystem).flatMap(({ content }) => partsOf(content))
  if (first < 0) return [{ role: 'user', content: parts }, ...others]
  return others.with(first, { ...others[first], content: [...parts, ...partsOf(others[first]?.content)] })
}

/** The statuses with which endpoints refuse a member of a request. OpenRouter reports missing tool support with 404, llama.cpp with 500. */
const STATUSES = new Set([400, 404, 422, 500])

export const REQUEST_LIMITS: readonly RequestLimit[] = [
  {
    // OpenAI at /v1/chat/completions: `Function tools with reasoning_effort are not supported for this model in /v1/chat/completions. To
    // use function tools, use /v1/responses or set reasoning_effort to 'none'.`
    label: "takes tools only with reasoning_effort 'none'",
    words: [['function tools', 'reasoning_effort', 'none']],
    concerns: (body) => body.tools !== undefined && body.reasoning_effort !== 'none',
    keep: (body) => ({ ...body, reasoning_effort: 'none' }),
  },
  {
    // OpenAI: `Unsupported parameter: 'reasoning_effort' is not supported with this model.`, and `Unrecognized request argument supplied:
    // reasoning_effort`. Mistral and vLLM: `Extra inputs are not permitted`.
    label: 'does not take reasoning_effort',
    words: [...REFUSED, 'does not support'].map((word) => ['reasoning_effort', word]),
    concerns: has('reasoning_effort'),
    keep: (body) => without(body, 'reasoning_effort'),
  },
  {
    // Ollama: `registry.ollama.ai/library/gemma3:latest does not support tools`. OpenRouter: `No endpoints found that support tool use`.
    // Groq: `tool calling is not supported with this model`. vLLM without a parser: `"auto" tool choice requires
    // --enable-auto-tool-choice`. llama.cpp: `tools param requires --jinja flag`, and in old versions `Unsupported param: tools`.
    // SGLang: `requires --tool-call-parser`. Google: `Function calling is not enabled for models/gemma-3-27b-it`. OpenAI: `Unsupported
    // parameter: 'tools' is not supported with this model.` DashScope and Azure: `tools is not supported in this model`.
    label: 'does not support tools',
    words: [
      ['does not support tools'],
      ['support tool use'],
      ['tool calling', 'not supported'],
      ['--enable-auto-tool-choice'],
      ['tools param requires --jinja'],
      ['unsupported param: tools'],
      ['--tool-call-parser'],
      ['function calling is not'],
      ...['tools is', "'tools' is", '`tools` is'].map((word) => [`${word} not supported`]),
    ],
    concerns: has('tools'),
    keep: (body) => without(body, 'tools', 'tool_choice'),
  },
  {
    // DeepSeek: `deepseek-reasoner does not support this tool_choice`. OpenAI: `Unsupported parameter: 'tool_choice'`
    label: 'does not take tool_choice',
    words: [...REFUSED, 'does not support'].map((word) => ['tool_choice', word]),
    concerns: has('tool_choice'),
    keep: (body) => without(body, 'tool_choice'),
  },
  {
    // Templates of Gemma in vLLM and Text Generation Inference: `System role not supported`. Google: `Developer instruction is not enabled for
    // models/gemma-3-27b-it`.
    label: 'does not take system messages',
    words: [['system role not supported'], ['developer instruction is not enabled']],
    concerns: ({ messages }) => listOf(messages).some(isSystem),
    keep: (body) => ({ ...body, messages: withoutSystem(listOf(body.messages)) }),
  },
  {
    // OpenAI: `Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.`
    label: 'takes max_completion_tokens instead of max_tokens',
    words: [['max_tokens', 'max_completion_tokens']],
    concerns: has('max_tokens'),
    keep: (body) => renamed(body, 'max_tokens', 'max_completion_tokens'),
  },
  {
    // Mistral: `{"type":"extra_forbidden","loc":["body","max_completion_tokens"],"msg":"Extra inputs are not permitted"}`
    label: 'takes max_tokens instead of max_completion_tokens',
    words: REFUSED.map((word) => ['max_completion_tokens', word]),
    concerns: has('max_completion_tokens'),
    keep: (body) => renamed(body, 'max_completion_tokens', 'max_tokens'),
  },
  {
    // OpenAI: `Unsupported value: 'temperature' does not support 0.2 with this model. Only the default (1) value is supported.`
    // Moonshot: `invalid temperature: only 1 is allowed for this model`
    label: 'takes only the default temperature',
    words: ['not support', 'unsupported', 'deprecated', 'invalid'].map((word) => ['temperature', word]),
    concerns: has('temperature'),
    keep: (body) => without(body, 'temperature'),
  },
  {
    // Mistral and older servers: `loc: ["body","stream_options","include_usage"]`
    label: 'does not support stream_options',
    words: [['stream_options']],
    concerns: has('stream_options'),
    keep: (body) => without(body, 'stream_options'),
  },
]

const isSaid = (said: string, { words }: RequestLimit): boolean => words.some((all) => all.every((word) => said.includes(word)))

/** The limits of one model. */
export class LearntLimits {
  readonly #learnt = new Set<RequestLimit>()
  readonly #onLearn: (label: string) => void

  constructor(onLearn: (label: string) => void) {
    this.#onLearn = onLearn
  }

  /** Returns the request that keeps every learnt limit. */
  apply(body: Body): Body {
    let kept = body
    for (const limit of this.#learnt) if (limit.concerns(kept)) kept = limit.keep(kept)
    return kept
  }

  /** Learns from a refused request. Returns whether the same request may now succeed. */
  learn(error: unknown): boolean {
    const { statusCode, message, responseBody, requestBodyValues } = (error ?? {}) as Readonly<Record<string, unknown>>
    if (typeof statusCode !== 'number' || !STATUSES.has(statusCode)) return false
    const said = `${message}\n${responseBody}`.toLowerCase()
    const sent = (requestBodyValues ?? {}) as Body
    const limit = REQUEST_LIMITS.find((each) => !this.#learnt.has(each) && each.concerns(sent) && isSaid(said, each))
    if (!limit) return false
    this.#learnt.add(limit)
    this.#onLearn(limit.label)
    return true
  }
}
