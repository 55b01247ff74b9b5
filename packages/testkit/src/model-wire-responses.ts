/**
 * The Responses API of OpenAI, as strict about requests as the real service. Sources:
 * https://platform.openai.com/docs/api-reference/responses/create and https://platform.openai.com/docs/api-reference/responses-streaming.
 */
import * as v from 'valibot'
import { type FullReply, type ModelWire, pieces, words } from './model-script.ts'

const nonEmpty = v.pipe(v.string(), v.minLength(1))
const part = v.variant('type', [
  v.strictObject({ type: v.picklist(['input_text', 'output_text']), text: v.string(), annotations: v.optional(v.array(v.unknown())) }),
  v.strictObject({
    type: v.literal('input_image'),
    image_url: v.optional(v.string()),
    file_id: v.optional(v.string()),
    detail: v.optional(v.string()),
  }),
  v.strictObject({
    type: v.literal('input_file'),
    filename: v.optional(v.string()),
    file_data: v.optional(v.string()),
    file_id: v.optional(v.string()),
    file_url: v.optional(v.string()),
  }),
  v.strictObject({ type: v.literal('refusal'), refusal: v.string() }),
])
const message = v.strictObject({
  type: v.optional(v.literal('message')),
  id: v.optional(v.string()),
  status: v.optional(v.string()),
  phase: v.optional(v.string()),
  role: v.picklist(['user', 'assistant', 'system', 'developer']),
  content: v.union([v.string(), v.array(part)]),
})
const call = v.strictObject({
  type: v.literal('function_call'),
  id: v.optional(v.pipe(v.string(), v.startsWith('fc'))),
  call_id: nonEmpty,
  name: v.pipe(v.string(), v.regex(/^[a-zA-Z0-9_-]{1,64}$/)),
  arguments: v.string(),
  status: v.optional(v.string()),
})
const callOutput = v.strictObject({
  type: v.literal('function_call_output'),
  id: v.optional(v.string()),
  call_id: nonEmpty,
  output: v.union([v.string(), v.array(part)]),
  status: v.optional(v.string()),
})
const reasoning = v.strictObject({
  type: v.literal('reasoning'),
  id: v.optional(v.pipe(v.string(), v.startsWith('rs'))),
  encrypted_content: v.nullish(v.string()),
  summary: v.array(v.strictObject({ type: v.literal('summary_text'), text: v.string() })),
  content: v.optional(v.array(v.unknown())),
  status: v.optional(v.string()),
})
const reference = v.strictObject({ type: v.literal('item_reference'), id: v.string() })
const item = v.union([message, call, callOutput, reasoning, reference])
const tool = v.strictObject({
  type: v.literal('function'),
  name: v.pipe(v.string(), v.regex(/^[a-zA-Z0-9_-]{1,64}$/)),
  description: v.optional(v.string()),
  parameters: v.looseObject({ type: v.literal('object') }),
  strict: v.nullish(v.boolean()),
})
const request = v.strictObject({
  model: nonEmpty,
  input: v.union([nonEmpty, v.pipe(v.array(item), v.minLength(1))]),
  instructions: v.nullish(v.string()),
  tools: v.optional(v.array(tool)),
  tool_choice: v.optional(v.union([v.picklist(['auto', 'none', 'required']), v.looseObject({ type: v.string() })])),
  parallel_tool_calls: v.optional(v.boolean()),
  stream: v.optional(v.boolean(), false),
  store: v.optional(v.boolean(), true),
  include: v.optional(v.array(v.string())),
  reasoning: v.optional(v.strictObject({ effort: v.nullish(v.string()), summary: v.nullish(v.string()), context: v.nullish(v.string()) })),
  text: v.optional(v.looseObject({})),
  temperature: v.optional(v.pipe(v.number(), v.minValue(0), v.maxValue(2))),
  top_p: v.optional(v.number()),
  max_output_tokens: v.optional(v.pipe(v.number(), v.integer(), v.minValue(16))),
  metadata: v.optional(v.record(v.string(), v.string())),
  previous_response_id: v.nullish(v.string()),
  prompt_cache_key: v.optional(v.string()),
  prompt_cache_retention: v.optional(v.string()),
  safety_identifier: v.optional(v.string()),
  service_tier: v.optional(v.string()),
  truncation: v.optional(v.string()),
  user: v.optional(v.string()),
})
type Item = v.InferOutput<typeof item>

/** A call needs its output, an output its call, and the reasoning of a service that keeps nothing needs its encrypted content. */
function pairing(items: readonly Item[], isStored: boolean): string | undefined {
  const calls = new Set(items.flatMap((each) => (each.type === 'function_call' ? [each.call_id] : [])))
  const outputs = new Set(items.flatMap((each) => (each.type === 'function_call_output' ? [each.call_id] : [])))
  for (const id of outputs) if (!calls.has(id)) return `No tool call found for function call output with call_id ${id}.`
  for (const id of calls) if (!outputs.has(id)) return `No tool output found for function call ${id}.`
  if (isStored) return undefined
  const lost = items.find((each) => each.type === 'item_reference' || (each.type === 'reasoning' && !each.encrypted_content))
  return lost && `Item with id '${'id' in lost ? lost.id : ''}' not found. Items are not persisted when \`store\` is set to false.`
}

const textOf = (content: v.InferOutput<typeof message>['content']): string =>
  typeof content === 'string' ? content : content.map((each) => ('text' in each ? each.text : '')).join('')

const usage = ({ usage: { inputTokens, outputTokens } }: FullReply) => ({
  input_tokens: inputTokens,
  input_tokens_details: { cached_tokens: 0 },
  output_tokens: outputTokens,
  output_tokens_details: { reasoning_tokens: 0 },
  total_tokens: inputTokens + outputTokens,
})

/** The finished items of a reply. Reasoning comes encrypted, as for a request with `include`. */
const itemsOf = (reply: FullReply) => [
  ...(reply.thinking
    ? [
        {
          type: 'reasoning',
          id: `rs_${reply.number}`,
          encrypted_content: `encrypted-${reply.number}`,
          summary: [{ type: 'summary_text', text: reply.thinking }],
        },
      ]
    : []),
  ...(reply.text
    ? [
        {
          type: 'message',
          id: `msg_${reply.number}`,
          status: 'completed',
          role: 'assistant',
          content: [{ type: 'output_text', text: reply.text, annotations: [] }],
        },
      ]
    : []),
  ...reply.toolCalls.map(({ id, name, input }) => ({
    type: 'function_call',
    id: `fc_${id}`,
    call_id: id,
    name,
    arguments: JSON.stringify(input),
    status: 'completed',
  })),
]

const responseOf = (reply: FullReply, status: string, output: readonly unknown[]) => ({
  id: `resp_${reply.number}`,
  object: 'response',
  created_at: 1_767_225_600,
  status,
  model: reply.model,
  output,
  error: null,
  incomplete_details: status === 'incomplete' ? { reason: 'max_output_tokens' } : null,
  ...(status === 'in_progress' ? {} : { usage: usage(reply) }),
})

function events(reply: FullReply): readonly string[] {
  const sent: string[] = []
  const send = (type: string, members: object) => {
    sent.push(`event: ${type}\ndata: ${JSON.stringify({ type, sequence_number: sent.length, ...members })}\n\n`)
  }
  send('response.created', { response: responseOf(reply, 'in_progress', []) })
  send('response.in_progress', { response: responseOf(reply, 'in_progress', []) })
  for (const [output_index, done] of itemsOf(reply).entries()) {
    const place = { item_id: done.id, output_index }
    const empty = { message: { content: [] }, reasoning: { summary: [] }, function_call: { arguments: '' } }[done.type]
    send('response.output_item.added', { output_index, item: { ...done, ...empty, status: 'in_progress' } })
    if ('summary' in done) {
      send('response.reasoning_summary_part.added', { ...place, summary_index: 0, part: { type: 'summary_text', text: '' } })
      for (const delta of words(reply.thinking)) send('response.reasoning_summary_text.delta', { ...place, summary_index: 0, delta })
      send('response.reasoning_summary_part.done', { ...place, summary_index: 0, part: done.summary[0] })
    } else if ('content' in done) {
      send('response.content_part.added', { ...place, content_index: 0, part: { type: 'output_text', text: '', annotations: [] } })
      for (const delta of words(reply.text)) send('response.output_text.delta', { ...place, content_index: 0, delta, logprobs: [] })
      send('response.output_text.done', { ...place, content_index: 0, text: reply.text, logprobs: [] })
      send('response.content_part.done', { ...place, content_index: 0, part: done.content[0] })
    } else {
      for (const delta of pieces(done.arguments)) send('response.function_call_arguments.delta', { ...place, delta })
      send('response.function_call_arguments.done', { ...place, name: done.name, arguments: done.arguments })
    }
    send('response.output_item.done', { output_index, item: done })
  }
  const status = reply.cutShort ? 'incomplete' : 'completed'
  send(`response.${status}`, { response: responseOf(reply, status, itemsOf(reply)) })
  return sent
}

/** The wire format of the Responses API. */
export const responsesWire: ModelWire = {
  name: 'responses',
  serves: (url) => url === '/v1/responses',
  apiKey: (headers) => /^Bearer (.+)$/.exec(headers.get('authorization') ?? '')?.[1] ?? '',
  models: (names) => ({ object: 'list', data: names.map((id) => ({ id, object: 'model', created: 1_767_225_600, owned_by: 'system' })) }),
  problem(_headers, body) {
    const parsed = v.safeParse(request, body)
    if (!parsed.success) return `Invalid value for '${v.getDotPath(parsed.issues[0]) ?? ''}': ${parsed.issues[0].message}`
    const { input, store } = parsed.output
    return typeof input === 'string' ? undefined : pairing(input, store)
  },
  error: (status, text) => ({
    error: { message: text, type: status >= 500 ? 'server_error' : 'invalid_request_error', param: null, code: null },
  }),
  lastUserText(body) {
    const { input } = v.parse(request, body)
    if (typeof input === 'string') return input
    const last = input.findLast((each): each is v.InferOutput<typeof message> => 'role' in each && each.role === 'user')
    return last ? textOf(last.content) : ''
  },
  json: (reply) => responseOf(reply, reply.cutShort ? 'incomplete' : 'completed', itemsOf(reply)),
  events,
}
