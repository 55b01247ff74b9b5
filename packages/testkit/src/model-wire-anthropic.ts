/** The Anthropic messages wire format, as strict about requests as the real service. */
import * as v from 'valibot'
import { type FullReply, type ModelWire, pieces, words } from './model-script.ts'

const nonEmpty = v.pipe(v.string(), v.minLength(1))
/** https://docs.anthropic.com/en/docs/build-with-claude/prompt-caching */
const cached = { cache_control: v.nullish(v.strictObject({ type: v.literal('ephemeral'), ttl: v.optional(v.picklist(['5m', '1h'])) })) }
const text = v.strictObject({ type: v.literal('text'), text: nonEmpty, citations: v.nullish(v.array(v.unknown())), ...cached })
const thinking = v.strictObject({ type: v.literal('thinking'), thinking: v.string(), signature: nonEmpty })
const redacted = v.strictObject({ type: v.literal('redacted_thinking'), data: nonEmpty })
const toolUse = v.strictObject({
  type: v.literal('tool_use'),
  id: v.pipe(v.string(), v.regex(/^[a-zA-Z0-9_-]+$/)),
  name: nonEmpty,
  input: v.record(v.string(), v.unknown()),
  ...cached,
})
const source = v.looseObject({ type: v.string() })
const image = v.strictObject({ type: v.literal('image'), source, ...cached })
const document = v.strictObject({
  type: v.literal('document'),
  source,
  title: v.nullish(v.string()),
  context: v.nullish(v.string()),
  citations: v.optional(v.unknown()),
  ...cached,
})
const toolResult = v.strictObject({
  type: v.literal('tool_result'),
  tool_use_id: nonEmpty,
  content: v.optional(v.union([v.string(), v.array(v.variant('type', [text, image, document]))])),
  is_error: v.optional(v.boolean()),
  ...cached,
})
const blocks = v.pipe(v.array(v.variant('type', [text, thinking, redacted, toolUse, toolResult, image, document])), v.minLength(1))
const message = v.strictObject({ role: v.picklist(['user', 'assistant']), content: v.union([nonEmpty, blocks]) })
const tool = v.strictObject({
  type: v.optional(v.literal('custom')),
  name: v.pipe(v.string(), v.regex(/^[a-zA-Z0-9_-]{1,128}$/)),
  description: v.optional(v.string()),
  input_schema: v.looseObject({ type: v.literal('object') }),
  strict: v.optional(v.boolean()),
  eager_input_streaming: v.optional(v.boolean()),
  ...cached,
})
/** Source: https://docs.anthropic.com/en/api/messages. */
const request = v.strictObject({
  model: nonEmpty,
  max_tokens: v.pipe(v.number(), v.integer(), v.minValue(1)),
  system: v.optional(v.union([v.string(), v.array(text)])),
  messages: v.pipe(v.array(message), v.minLength(1)),
  tools: v.optional(v.array(tool)),
  tool_choice: v.optional(v.looseObject({ type: v.picklist(['auto', 'any', 'tool', 'none']) })),
  stream: v.optional(v.boolean(), false),
  stop_sequences: v.optional(v.array(v.string())),
  temperature: v.optional(v.pipe(v.number(), v.minValue(0), v.maxValue(1))),
  top_k: v.optional(v.number()),
  top_p: v.optional(v.number()),
  metadata: v.optional(v.looseObject({})),
  thinking: v.optional(v.looseObject({ type: v.picklist(['enabled', 'disabled', 'adaptive']) })),
  output_config: v.optional(v.looseObject({})),
  service_tier: v.optional(v.string()),
  context_management: v.nullish(v.looseObject({})),
  container: v.nullish(v.unknown()),
})
type Message = v.InferOutput<typeof message>

const idsOf = ({ content }: Message, role: 'tool_use' | 'tool_result'): readonly string[] =>
  typeof content === 'string'
    ? []
    : content.flatMap((block) => {
        if (block.type === 'tool_use' && role === 'tool_use') return [block.id]
        return block.type === 'tool_result' && role === 'tool_result' ? [block.tool_use_id] : []
      })

/** Checks that the message after each tool use answers it, and answers no other. */
function pairing(messages: readonly Message[]): string | undefined {
  if (messages[0]?.role !== 'user') return 'messages: first message must use the "user" role'
  let open: readonly string[] = []
  for (const [index, current] of messages.entries()) {
    const answered = idsOf(current, 'tool_result')
    const stray = answered.find((id) => !open.includes(id))
    if (stray) return `messages.${index}: unexpected \`tool_use_id\` found in \`tool_result\` blocks: ${stray}`
    if (open.some((id) => !answered.includes(id))) return unanswered(index - 1, open)
    open = idsOf(current, 'tool_use')
  }
  return open.length > 0 ? unanswered(messages.length - 1, open) : undefined
}

const unanswered = (index: number, ids: readonly string[]): string =>
  `messages.${index}: \`tool_use\` ids were found without \`tool_result\` blocks immediately after: ${ids.join(', ')}`

const ERROR_TYPES: Readonly<Record<number, string>> = {
  401: 'authentication_error',
  403: 'permission_error',
  404: 'not_found_error',
  413: 'request_too_large',
  429: 'rate_limit_error',
  529: 'overloaded_error',
}

const stopReason = (reply: FullReply) => (reply.cutShort ? 'max_tokens' : reply.toolCalls.length > 0 ? 'tool_use' : 'end_turn')
const head = (reply: FullReply) => ({ id: `msg_${reply.number}`, type: 'message', role: 'assistant', model: reply.model })

function events(reply: FullReply): readonly string[] {
  const { inputTokens, outputTokens } = reply.usage
  const sent: { type: string }[] = []
  const send = (type: string, members: object = {}) => sent.push({ type, ...members })
  const start = { ...head(reply), content: [], stop_reason: null, stop_sequence: null }
  send('message_start', { message: { ...start, usage: { input_tokens: inputTokens, output_tokens: 1 } } })
  send('ping')
  let index = 0
  const block = (content_block: unknown, deltas: readonly unknown[]) => {
    send('content_block_start', { index, content_block })
    for (const delta of deltas) send('content_block_delta', { index, delta })
    send('content_block_stop', { index })
    index++
  }
  if (reply.text) {
    block(
      { type: 'text', text: '' },
      words(reply.text).map((word) => ({ type: 'text_delta', text: word })),
    )
  }
  for (const { id, name, input } of reply.toolCalls) {
    const json = ['', ...pieces(JSON.stringify(input))]
    block(
      { type: 'tool_use', id, name, input: {} },
      json.map((partial_json) => ({ type: 'input_json_delta', partial_json })),
    )
  }
  send('message_delta', { delta: { stop_reason: stopReason(reply), stop_sequence: null }, usage: { output_tokens: outputTokens } })
  send('message_stop')
  return sent.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`)
}

/** The wire format of Anthropic's messages API. */
export const anthropicWire: ModelWire = {
  name: 'anthropic',
  serves: (url) => url === '/v1/messages',
  // The client of Anthropic sends `Authorization`; the documentation of the API names `x-api-key`.
  apiKey: (headers) => headers.get('x-api-key') ?? /^Bearer (.+)$/.exec(headers.get('authorization') ?? '')?.[1] ?? '',
  // Source: https://docs.anthropic.com/en/api/models-list.
  models: (names) => ({
    data: names.map((id) => ({ type: 'model', id, display_name: id, created_at: '2026-01-01T00:00:00Z' })),
    first_id: names[0] ?? null,
    last_id: names.at(-1) ?? null,
    has_more: false,
  }),
  problem(headers, body) {
    if (!headers.get('anthropic-version')) return 'anthropic-version: header is required'
    const parsed = v.safeParse(request, body)
    if (!parsed.success) {
      const [{ type, message: reason }] = parsed.issues
      return `${v.getDotPath(parsed.issues[0]) ?? 'body'}: ${type === 'strict_object' ? 'Extra inputs are not permitted' : reason}`
    }
    return pairing(parsed.output.messages)
  },
  error: (status, message) => ({
    type: 'error',
    error: { type: ERROR_TYPES[status] ?? (status >= 500 ? 'api_error' : 'invalid_request_error'), message },
    request_id: 'req_test',
  }),
  lastUserText(body) {
    const content = v.parse(request, body).messages.findLast(({ role }) => role === 'user')?.content ?? ''
    return typeof content === 'string' ? content : content.map((block) => (block.type === 'text' ? block.text : '')).join('')
  },
  json: (reply) => ({
    ...head(reply),
    content: [
      ...(reply.text ? [{ type: 'text', text: reply.text }] : []),
      ...reply.toolCalls.map(({ id, name, input }) => ({ type: 'tool_use', id, name, input })),
    ],
    stop_reason: stopReason(reply),
    stop_sequence: null,
    usage: { input_tokens: reply.usage.inputTokens, output_tokens: reply.usage.outputTokens },
  }),
  events,
}
