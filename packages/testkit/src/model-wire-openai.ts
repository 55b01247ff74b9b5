/** The chat-completions wire format, as strict about requests as the real service. */
import * as v from 'valibot'
import { CHAT_DIALECTS, type ChatDialect, unknownMember } from './model-dialects.ts'
import { type FullReply, type ModelWire, pieces, words } from './model-script.ts'

const part = v.looseObject({ type: v.string() })
const content = v.union([v.string(), v.pipe(v.array(part), v.minLength(1))])
const toolCall = v.object({
  id: v.pipe(v.string(), v.minLength(1)),
  type: v.literal('function'),
  function: v.looseObject({ name: v.string(), arguments: v.string() }),
})
const message = v.variant('role', [
  v.looseObject({ role: v.picklist(['system', 'developer', 'user']), content }),
  v.looseObject({
    role: v.literal('assistant'),
    content: v.nullish(content),
    tool_calls: v.optional(v.pipe(v.array(toolCall), v.minLength(1))),
  }),
  v.looseObject({ role: v.literal('tool'), tool_call_id: v.string(), content }),
])
const tool = v.object({
  type: v.literal('function'),
  function: v.looseObject({
    name: v.pipe(v.string(), v.regex(/^[a-zA-Z0-9_-]{1,64}$/)),
    description: v.optional(v.string()),
    parameters: v.looseObject({ type: v.literal('object'), properties: v.optional(v.record(v.string(), v.unknown())) }),
  }),
})
const request = v.looseObject({
  model: v.pipe(v.string(), v.minLength(1)),
  messages: v.pipe(v.array(message), v.minLength(1)),
  tools: v.optional(v.pipe(v.array(tool), v.minLength(1))),
  stream: v.optional(v.boolean(), false),
  stream_options: v.optional(v.looseObject({ include_usage: v.optional(v.boolean(), false) })),
  temperature: v.optional(v.pipe(v.number(), v.minValue(0), v.maxValue(2))),
  max_tokens: v.optional(v.pipe(v.number(), v.integer(), v.minValue(1))),
})
type Message = v.InferOutput<typeof message>

/** Checks that the messages right after each tool call answer it, and answer no other. */
function pairing(messages: readonly Message[]): string | undefined {
  let open = new Set<string>()
  for (const [index, current] of messages.entries()) {
    if (current.role === 'tool') {
      if (!open.delete(current.tool_call_id)) {
        return `messages.[${index}]: a message with role 'tool' must be a response to a preceding message with 'tool_calls'`
      }
      continue
    }
    if (open.size > 0) return unanswered(open)
    open = new Set(current.role === 'assistant' ? current.tool_calls?.map(({ id }) => id) : [])
  }
  return open.size > 0 ? unanswered(open) : undefined
}

const unanswered = (ids: ReadonlySet<string>): string =>
  `An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id': ${[...ids].join(', ')}`

const textOf = (value: v.InferOutput<typeof content>): string =>
  typeof value === 'string' ? value : value.map((entry) => String(entry.text ?? '')).join('')

const usage = ({ usage: { inputTokens, outputTokens } }: FullReply) => ({
  prompt_tokens: inputTokens,
  completion_tokens: outputTokens,
  total_tokens: inputTokens + outputTokens,
})
const finish = (reply: FullReply) => (reply.cutShort ? 'length' : reply.toolCalls.length > 0 ? 'tool_calls' : 'stop')
const head = (reply: FullReply, object: string) => ({ id: `chatcmpl-${reply.number}`, object, created: 1_700_000_000, model: reply.model })
const wireCall = (call: FullReply['toolCalls'][number]) => ({
  id: call.id,
  type: 'function',
  function: { name: call.name, arguments: JSON.stringify(call.input) },
})

function events(reply: FullReply, body: unknown, alwaysCounts = false): readonly string[] {
  const chunk = (delta: unknown, finish_reason: string | null = null) => ({
    ...head(reply, 'chat.completion.chunk'),
    choices: [{ index: 0, delta, finish_reason }],
  })
  const chunks: unknown[] = [chunk({ role: 'assistant', content: '' })]
  for (const word of words(reply.text)) chunks.push(chunk({ content: word }))
  for (const [index, call] of reply.toolCalls.entries()) {
    const { id, type, function: named } = wireCall(call)
    chunks.push(chunk({ tool_calls: [{ index, id, type, function: { name: named.name, arguments: '' } }] }))
    for (const piece of pieces(named.arguments)) chunks.push(chunk({ tool_calls: [{ index, function: { arguments: piece } }] }))
  }
  chunks.push(chunk({}, finish(reply)))
  const wantsUsage = v.parse(request, body).stream_options?.include_usage
  if (wantsUsage || alwaysCounts) chunks.push({ ...head(reply, 'chat.completion.chunk'), choices: [], usage: usage(reply) })
  return [...chunks.map((value) => `data: ${JSON.stringify(value)}\n\n`), 'data: [DONE]\n\n']
}

/** The chat-completions API of one service; its base URL on the server is `/<name>/v1`, or `/v1` for OpenAI. */
const chatWire = (name: string, dialect: ChatDialect): ModelWire => ({
  name: 'openai',
  serves: (url) => url === `${name && `/${name}`}/v1/chat/completions`,
  apiKey: (headers) => /^Bearer (.+)$/.exec(headers.get('authorization') ?? '')?.[1] ?? '',
  // Source: https://platform.openai.com/docs/api-reference/models/list.
  models: (names) => ({
    object: 'list',
    data: names.map((id) => ({ id, object: 'model', created: 1_767_225_600, owned_by: 'system' })),
  }),
  problem(_headers, body) {
    const parsed = v.safeParse(request, body)
    if (!parsed.success) return `Invalid value for '${v.getDotPath(parsed.issues[0]) ?? ''}': ${parsed.issues[0].message}`
    if (parsed.output.stream_options && !parsed.output.stream) return "'stream_options' is only allowed when 'stream' is enabled"
    const member = unknownMember(dialect, body)
    if (member) return dialect.refuse(member)
    return dialect.problem?.(parsed.output) ?? pairing(parsed.output.messages)
  },
  error: (status, message) => ({
    error: { message, type: status >= 500 ? 'server_error' : 'invalid_request_error', param: null, code: null },
  }),
  lastUserText(body) {
    const last = v.parse(request, body).messages.findLast(({ role }) => role === 'user')
    return last?.content ? textOf(last.content) : ''
  },
  json: (reply) => ({
    ...head(reply, 'chat.completion'),
    choices: [
      {
        index: 0,
        message: {
          role: 'assistant',
          content: reply.text || null,
          ...(reply.toolCalls.length > 0 && { tool_calls: reply.toolCalls.map(wireCall) }),
        },
        finish_reason: finish(reply),
      },
    ],
    usage: usage(reply),
  }),
  events: (reply, body) => events(reply, body, dialect.alwaysCounts),
})

/** The chat-completions API of every service. */
export const CHAT_WIRES: readonly ModelWire[] = Object.entries(CHAT_DIALECTS).map(([name, dialect]) => chatWire(name, dialect))

/** The chat-completions API of OpenAI. */
export const openaiWire: ModelWire = chatWire('', CHAT_DIALECTS[''] as ChatDialect)
