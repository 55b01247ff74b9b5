/** The replies of the Gemini API other than plain answers. Sources are named at each test. */
import { type LanguageModel, type ModelMessage, type ModelStreamPart, Secret } from '@sluice/sdk'
import { type ModelServer, startModelServer } from '@sluice/testkit/model-server'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { google } from './google.ts'

let server: ModelServer
let model: LanguageModel
beforeEach(async () => {
  server = await startModelServer()
  const settings = { kind: 'google', base_url: `${server.url}/v1beta`, api_key: new Secret(server.apiKey), model: 'gemini-3-flash' }
  model = await google.load(settings, { fetch })
})
afterEach(() => server.close())

const hello: ModelMessage = { role: 'user', content: [{ type: 'text', text: 'hello' }] }
const event = (parts: readonly object[], more: object = {}) => ({ candidates: [{ content: { role: 'model', parts }, index: 0, ...more }] })

async function collect(...prompt: ModelMessage[]): Promise<ModelStreamPart[]> {
  const parts: ModelStreamPart[] = []
  for await (const part of (await model.doStream({ prompt })).stream) parts.push(part)
  return parts
}

const textOf = (parts: readonly ModelStreamPart[]): string => parts.map((part) => (part.type === 'text-delta' ? part.delta : '')).join('')

// https://ai.google.dev/gemini-api/docs/thought-signatures: a call without the signature that came with it is refused.
it('sends a tool call back with its signature', async () => {
  const called = event([{ functionCall: { name: 'look', args: { at: 1 } }, thoughtSignature: 'c2ln' }], { finishReason: 'STOP' })
  server.script({ frames: [called] })
  const parts = await collect(hello)
  const [call] = parts.filter((part) => part.type === 'tool-call')
  expect(call).toMatchObject({ toolName: 'look', input: '{"at":1}', toolCallId: expect.stringMatching(/^call_/) })
  expect(parts.at(-1)).toMatchObject({ type: 'finish', finishReason: { unified: 'tool-calls' } })
  if (!call?.providerMetadata) throw new Error('the call has no metadata')
  const { toolCallId, toolName, providerMetadata } = call
  await model.doGenerate({
    prompt: [
      hello,
      { role: 'assistant', content: [{ type: 'tool-call', toolCallId, toolName, input: { at: 1 }, providerOptions: providerMetadata }] },
      { role: 'tool', content: [{ type: 'tool-result', toolCallId, toolName, output: { type: 'text', value: 'a cat' } }] },
    ],
  })
  expect(server.requests[1]).toMatchObject({ refused: null, body: { contents: [{}, { parts: [{ thoughtSignature: 'c2ln' }] }, {}] } })
})

// https://ai.google.dev/gemini-api/docs/thinking#summaries
it('reads thoughts as reasoning, and counts their tokens and the tokens of the cache', async () => {
  const usageMetadata = { promptTokenCount: 100, cachedContentTokenCount: 80, candidatesTokenCount: 5, thoughtsTokenCount: 7 }
  server.script({
    frames: [event([{ text: 'Hm.', thought: true }]), { ...event([{ text: 'Yes.' }], { finishReason: 'STOP' }), usageMetadata }],
  })
  const parts = await collect(hello)
  expect(textOf(parts)).toBe('Yes.')
  expect(parts).toContainEqual(expect.objectContaining({ type: 'reasoning-delta', delta: 'Hm.' }))
  expect(parts.at(-1)).toMatchObject({
    usage: { inputTokens: { total: 100, cacheRead: 80 }, outputTokens: { total: 12, reasoning: 7 } },
  })
})

// https://ai.google.dev/api/generate-content#FinishReason
it.each([
  ['MAX_TOKENS', 'length'],
  ['SAFETY', 'content-filter'],
  ['RECITATION', 'content-filter'],
  ['PROHIBITED_CONTENT', 'content-filter'],
  ['A_REASON_OF_TOMORROW', 'other'],
])('ends a reply with the reason %s as %s', async (finishReason, unified) => {
  server.script({ frames: [event([{ text: 'So ' }]), event([{ text: 'far' }], { finishReason })] })
  const parts = await collect(hello)
  expect(textOf(parts)).toBe('So far')
  expect(parts.at(-1)).toMatchObject({ type: 'finish', finishReason: { unified } })
})

// https://ai.google.dev/api/generate-content#PromptFeedback: a blocked prompt has no candidates.
it('reports a blocked prompt as filtered', async () => {
  server.script({ frames: [{ promptFeedback: { blockReason: 'PROHIBITED_CONTENT' } }] })
  expect((await collect(hello)).at(-1)).toMatchObject({ type: 'finish', finishReason: { unified: 'content-filter' } })
})

it('leaves out parts and members of types that are not known, in pieces of any size', async () => {
  const frames = [
    event([{ text: 'One ' }, { hologram: { url: 'x' } }]),
    { ...event([{ text: 'two' }], { finishReason: 'STOP' }), mood: 'good' },
  ]
  server.script({ frames, pieceBytes: 7 })
  const parts = await collect(hello)
  expect(textOf(parts)).toBe('One two')
  expect(parts.at(-1)).toMatchObject({ finishReason: { unified: 'stop' } })
})

// https://github.com/googleapis/js-genai/issues: an overloaded service reports its error as an event of a stream with status 200.
it('reports an error within a stream', async () => {
  server.script({
    frames: [event([{ text: 'One ' }]), { error: { code: 503, message: 'The model is overloaded.', status: 'UNAVAILABLE' } }],
  })
  const parts = await collect(hello)
  expect(parts).toContainEqual(
    expect.objectContaining({ type: 'error', error: expect.objectContaining({ message: 'The model is overloaded.' }) }),
  )
})

it('sends the key in its header, the settings of the call, and no key from the environment', async () => {
  await model.doGenerate({ prompt: [{ role: 'system', content: 'Be brief.' }, hello], maxOutputTokens: 10, temperature: 0 })
  const [request] = server.requests
  expect([request?.headers.get('x-goog-api-key'), request?.headers.get('authorization')]).toEqual([server.apiKey, null])
  expect(request?.body).toMatchObject({
    systemInstruction: { parts: [{ text: 'Be brief.' }] },
    generationConfig: { maxOutputTokens: 10, temperature: 0 },
  })
})
