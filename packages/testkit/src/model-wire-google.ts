/**
 * The wire format of the Gemini API, as strict about requests as the real service: it refuses unknown members, and function responses
 * that do not answer the calls before them. Source: https://ai.google.dev/api/generate-content and https://ai.google.dev/api/caching#Content.
 */
import * as v from 'valibot'
import { type FullReply, type ModelWire, words } from './model-script.ts'

const nonEmpty = v.pipe(v.string(), v.minLength(1))
const signature = { thought: v.optional(v.boolean()), thoughtSignature: v.optional(v.pipe(v.string(), v.base64())) }
const calls = v.strictObject({ id: v.optional(v.string()), name: nonEmpty, args: v.optional(v.record(v.string(), v.unknown())) })
const responses = v.strictObject({ id: v.optional(v.string()), name: nonEmpty, response: v.record(v.string(), v.unknown()) })
const part = v.union([
  v.strictObject({ text: v.string(), ...signature }),
  v.strictObject({ inlineData: v.strictObject({ mimeType: nonEmpty, data: v.pipe(v.string(), v.base64()) }), ...signature }),
  v.strictObject({ fileData: v.strictObject({ mimeType: v.optional(v.string()), fileUri: nonEmpty }), ...signature }),
  v.strictObject({ functionCall: calls, ...signature }),
  v.strictObject({ functionResponse: responses, ...signature }),
])
const content = v.strictObject({ role: v.picklist(['user', 'model']), parts: v.pipe(v.array(part), v.minLength(1)) })
/** The documentation allows a subset of OpenAPI 3.0; the service answers 400 for members such as `$schema` and `additionalProperties`. */
const schemaMembers = [
  ...['type', 'format', 'title', 'description', 'nullable', 'enum', 'maxItems', 'minItems', 'properties', 'required', 'minProperties'],
  ...[
    'maxProperties',
    'minLength',
    'maxLength',
    'pattern',
    'example',
    'anyOf',
    'propertyOrdering',
    'default',
    'items',
    'minimum',
    'maximum',
  ],
]
const declaration = v.strictObject({
  name: v.pipe(v.string(), v.regex(/^[a-zA-Z_][\w.:-]{0,127}$/)),
  description: v.string(),
  parameters: v.optional(v.record(v.string(), v.unknown())),
  parametersJsonSchema: v.optional(v.unknown()),
  response: v.optional(v.unknown()),
  behavior: v.optional(v.string()),
})
const tool = v.strictObject({ functionDeclarations: v.optional(v.array(declaration)) })
const generationConfig = v.strictObject({
  maxOutputTokens: v.optional(v.pipe(v.number(), v.integer(), v.minValue(1))),
  temperature: v.optional(v.pipe(v.number(), v.minValue(0), v.maxValue(2))),
  topP: v.optional(v.number()),
  topK: v.optional(v.number()),
  stopSequences: v.optional(v.array(v.string())),
  seed: v.optional(v.number()),
  candidateCount: v.optional(v.number()),
  frequencyPenalty: v.optional(v.number()),
  presencePenalty: v.optional(v.number()),
  responseMimeType: v.optional(v.string()),
  responseSchema: v.optional(v.unknown()),
  responseModalities: v.optional(v.array(v.string())),
  mediaResolution: v.optional(v.string()),
  thinkingConfig: v.optional(
    v.strictObject({
      includeThoughts: v.optional(v.boolean()),
      thinkingBudget: v.optional(v.number()),
      thinkingLevel: v.optional(v.picklist(['minimal', 'low', 'medium', 'high', 'MINIMAL', 'LOW', 'MEDIUM', 'HIGH'])),
    }),
  ),
})
const request = v.strictObject({
  contents: v.pipe(v.array(content), v.minLength(1)),
  systemInstruction: v.optional(v.strictObject({ role: v.optional(v.string()), parts: v.array(part) })),
  tools: v.optional(v.array(tool)),
  toolConfig: v.optional(
    v.strictObject({
      functionCallingConfig: v.optional(
        v.strictObject({
          mode: v.picklist(['AUTO', 'ANY', 'NONE', 'VALIDATED']),
          allowedFunctionNames: v.optional(v.array(v.string())),
        }),
      ),
      includeServerSideToolInvocations: v.optional(v.boolean()),
    }),
  ),
  safetySettings: v.optional(v.array(v.strictObject({ category: nonEmpty, threshold: nonEmpty }))),
  generationConfig: v.optional(generationConfig),
  cachedContent: v.optional(v.string()),
  serviceTier: v.optional(v.string()),
  labels: v.optional(v.record(v.string(), v.string())),
})
type Content = v.InferOutput<typeof content>

const namesOf = ({ parts }: Content, kind: 'functionCall' | 'functionResponse'): readonly string[] =>
  parts.flatMap((each) => {
    if (kind === 'functionCall' && 'functionCall' in each) return [each.functionCall.name]
    return kind === 'functionResponse' && 'functionResponse' in each ? [each.functionResponse.name] : []
  })

/** https://ai.google.dev/gemini-api/docs/function-calling: the turn after function calls answers each of them. */
function pairing(contents: readonly Content[]): string | undefined {
  let open: readonly string[] = []
  for (const each of contents) {
    const answered = namesOf(each, 'functionResponse')
    if (answered.toSorted().join() !== open.toSorted().join())
      return 'Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.'
    open = namesOf(each, 'functionCall')
    if (open.length > 0 && each.role !== 'model') return 'Please ensure that function call turn comes from the role model.'
  }
  return open.length > 0 ? 'Please ensure that function response turn comes immediately after a function call turn.' : undefined
}

/** Returns the path of a member of a function's schema that the service does not know. */
function unknownSchemaMember(schema: unknown, path: string): string | undefined {
  if (typeof schema !== 'object' || schema === null) return undefined
  for (const [name, value] of Object.entries(schema)) {
    if (!schemaMembers.includes(name)) return `${path}.${name}`
    const inner =
      name === 'properties' ? Object.values(value as object) : name === 'anyOf' ? (value as unknown[]) : name === 'items' ? [value] : []
    const found = inner.map((each) => unknownSchemaMember(each, `${path}.${name}`)).find((each) => each !== undefined)
    if (found) return found
  }
  return undefined
}

const STATUSES: Readonly<Record<number, string>> = {
  400: 'INVALID_ARGUMENT',
  401: 'UNAUTHENTICATED',
  403: 'PERMISSION_DENIED',
  404: 'NOT_FOUND',
  429: 'RESOURCE_EXHAUSTED',
  500: 'INTERNAL',
  503: 'UNAVAILABLE',
  504: 'DEADLINE_EXCEEDED',
}

const callParts = ({ toolCalls }: FullReply) => toolCalls.map(({ id, name, input }) => ({ functionCall: { id, name, args: input } }))
const end = ({ cutShort }: FullReply) => (cutShort ? 'MAX_TOKENS' : 'STOP')
const usageMetadata = ({ usage: { inputTokens, outputTokens } }: FullReply) => ({
  promptTokenCount: inputTokens,
  candidatesTokenCount: outputTokens,
  totalTokenCount: inputTokens + outputTokens,
})
const answer = (reply: FullReply, parts: readonly object[], finishReason?: string) => ({
  candidates: [{ content: { role: 'model', parts }, ...(finishReason && { finishReason }), index: 0 }],
  usageMetadata: usageMetadata(reply),
  modelVersion: reply.model,
  responseId: `response-${reply.number}`,
})

const PATH = /^\/v1beta\/models\/([\w.-]+):(generateContent|streamGenerateContent\?alt=sse)$/

export const googleWire: ModelWire = {
  name: 'google',
  serves: (url) => PATH.test(url),
  streams: (_body, url) => PATH.exec(url)?.[2] !== 'generateContent',
  model: (_body, url) => PATH.exec(url)?.[1] ?? '',
  apiKey: (headers) => headers.get('x-goog-api-key') ?? '',
  // Source: https://ai.google.dev/gemini-api/docs/troubleshooting; the service does not answer 401.
  refusedKey: {
    status: 400,
    body: {
      error: {
        code: 400,
        message: 'API key not valid. Please pass a valid API key.',
        status: 'INVALID_ARGUMENT',
        details: [{ '@type': 'type.googleapis.com/google.rpc.ErrorInfo', reason: 'API_KEY_INVALID', domain: 'googleapis.com' }],
      },
    },
  },
  // Source: https://ai.google.dev/api/models#method:-models.list. The list also has models that answer no messages.
  models: (names) => ({
    models: [
      { name: 'models/text-embedding', inputTokenLimit: 2048, supportedGenerationMethods: ['embedContent'] },
      ...names.map((id) => ({
        name: `models/${id}`,
        displayName: id,
        inputTokenLimit: 1_048_576,
        outputTokenLimit: 65_536,
        supportedGenerationMethods: ['generateContent', 'countTokens'],
      })),
    ],
  }),
  problem(_headers, body) {
    const parsed = v.safeParse(request, body)
    if (!parsed.success) {
      const [issue] = parsed.issues
      return `Invalid JSON payload received. Unknown name or invalid value at '${v.getDotPath(issue) ?? ''}': ${issue.message}`
    }
    const { contents, tools = [] } = parsed.output
    for (const { functionDeclarations = [] } of tools) {
      for (const { name, parameters } of functionDeclarations) {
        const unknown = unknownSchemaMember(parameters, `${name}.parameters`)
        if (unknown) return `Invalid JSON payload received. Unknown name at '${unknown}': Cannot find field.`
      }
    }
    return pairing(contents)
  },
  // Source: https://cloud.google.com/apis/design/errors#http_mapping.
  error: (status, message) => ({ error: { code: status, message, status: STATUSES[status] ?? 'UNKNOWN' } }),
  lastUserText(body) {
    const last = v.parse(request, body).contents.findLast(({ role }) => role === 'user')
    return last?.parts.map((each) => ('text' in each ? each.text : '')).join('') ?? ''
  },
  json: (reply) => answer(reply, [...(reply.text ? [{ text: reply.text }] : []), ...callParts(reply)], end(reply)),
  events(reply) {
    const chunks = [...words(reply.text).map((text) => answer(reply, [{ text }])), ...callParts(reply).map((each) => answer(reply, [each]))]
    // The first event may be empty, and the last one often has an empty text and the reason of the end.
    return [answer(reply, [{ text: '' }]), ...chunks, answer(reply, [{ text: '' }], end(reply))].map(
      (chunk) => `data: ${JSON.stringify(chunk)}\r\n\r\n`,
    )
  },
}
