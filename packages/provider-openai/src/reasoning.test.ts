import type { LanguageModel, ModelPrompt, ModelStreamPart } from '@sluice/sdk'
import { Secret } from '@sluice/sdk'
import { CHAT_DIALECTS, type ModelServer, startModelServer } from '@sluice/testkit/model-server'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { chatCompletions } from './chat-completions.ts'
import { PRESETS } from './presets.ts'
import { chunk, collect, completion, DONE, deltas, hello } from './testing.ts'

let server: ModelServer
beforeEach(async () => {
  server = await startModelServer()
})
afterEach(() => server.close())

const load = (kind: string): Promise<LanguageModel> =>
  chatCompletions(kind, { baseUrl: `${server.url}${kind in CHAT_DIALECTS ? `/${kind}` : ''}/v1` }).load(
    { kind, api_key: new Secret(server.apiKey), model: 'small' },
    { fetch },
  )

const call = { index: 0, id: 'c1', type: 'function', function: { name: 'look', arguments: '{}' } }
const result: ModelPrompt[number] = {
  role: 'tool',
  content: [{ type: 'tool-result', toolCallId: 'c1', toolName: 'look', output: { type: 'text', value: 'seen' } }],
}

/** The assistant message that a turn keeps of a stream, as the agent builds it: the newest metadata of a block counts. */
function keptOf(parts: readonly ModelStreamPart[]): ModelPrompt[number] {
  const reasoning = parts.filter((part) => part.type.startsWith('reasoning'))
  const metadata = reasoning.findLast((part) => 'providerMetadata' in part && part.providerMetadata !== undefined)
  const providerOptions = metadata && 'providerMetadata' in metadata ? metadata.providerMetadata : undefined
  return {
    role: 'assistant',
    content: [
      ...(reasoning.length > 0
        ? [{ type: 'reasoning' as const, text: deltas(parts, 'reasoning-delta'), ...(providerOptions && { providerOptions }) }]
        : []),
      ...(deltas(parts, 'text-delta') === '' ? [] : [{ type: 'text' as const, text: deltas(parts, 'text-delta') }]),
      { type: 'tool-call', toolCallId: 'c1', toolName: 'look', input: {} },
    ],
  }
}

const sentMessage = () => (server.requests.at(-1)?.body as { messages: unknown[] } | undefined)?.messages[1]

describe('reasoning goes back under the name that it came with', () => {
  it.each<[vendor: string, frames: object[], sent: object]>([
    // Groq: https://console.groq.com/docs/reasoning. Cerebras: https://inference-docs.cerebras.ai/capabilities/reasoning
    ['groq', [{ reasoning: 'Let me ' }, { reasoning: 'look.' }], { reasoning: 'Let me look.' }],
    // DeepSeek: https://api-docs.deepseek.com/guides/thinking_mode
    ['deepseek', [{ reasoning_content: 'Let me look.' }], { reasoning_content: 'Let me look.' }],
    // OpenRouter: https://openrouter.ai/docs/use-cases/reasoning-tokens
    [
      'openrouter',
      [
        { reasoning: 'Let ', reasoning_details: [{ type: 'reasoning.text', text: 'Let ', format: 'anthropic-claude-v1', index: 0 }] },
        { reasoning: 'me.', reasoning_details: [{ type: 'reasoning.text', text: 'me.', format: 'anthropic-claude-v1', index: 0 }] },
        { reasoning_details: [{ type: 'reasoning.text', signature: 'c2ln', format: 'anthropic-claude-v1', index: 0 }] },
        { reasoning_details: [{ type: 'reasoning.encrypted', data: 'ZW5j', id: 'r1', format: 'openai-responses-v1', index: 1 }] },
      ],
      {
        reasoning: 'Let me.',
        reasoning_details: [
          { type: 'reasoning.text', text: 'Let me.', signature: 'c2ln', format: 'anthropic-claude-v1', index: 0 },
          { type: 'reasoning.encrypted', data: 'ZW5j', id: 'r1', format: 'openai-responses-v1', index: 1 },
        ],
      },
    ],
    // Mistral: https://docs.mistral.ai/capabilities/reasoning
    [
      'mistral',
      [
        { content: [{ type: 'thinking', thinking: [{ type: 'text', text: 'Let me look.' }] }] },
        { content: [{ type: 'text', text: 'So.' }] },
      ],
      {
        content: [
          { type: 'thinking', thinking: [{ type: 'text', text: 'Let me look.' }] },
          { type: 'text', text: 'So.' },
        ],
      },
    ],
    // Qwen and DeepSeek behind a server without a reasoning parser
    [
      'vllm',
      [{ content: '<thi' }, { content: 'nk>\nLet me look.\n</th' }, { content: 'ink>\n\nSo.' }],
      { content: '<think>\nLet me look.\n</think>So.' },
    ],
  ])('%s', async (kind, frames, sent) => {
    const model = await load(kind)
    server.script({ frames: [...frames.map((delta) => chunk(delta)), chunk({ tool_calls: [call] }, 'tool_calls'), DONE], pieceBytes: 41 })
    const parts = await collect(model)
    expect(deltas(parts, 'reasoning-delta').trim()).toMatch(/^Let me/)
    await model.doGenerate({ prompt: [...hello, keptOf(parts), result] })
    const message = sentMessage()
    expect(message).toMatchObject({ role: 'assistant', tool_calls: [{ id: 'c1' }], ...sent })
    const names = Object.keys(message ?? {}).filter((name) => name.startsWith('reasoning'))
    expect(names).toEqual(Object.keys(sent).filter((name) => name.startsWith('reasoning')))
  })

  it('a whole reply keeps its member and details too', async () => {
    const model = await load('openrouter')
    const details = [{ type: 'reasoning.summary', summary: 'Looked.', format: 'openai-responses-v1', index: 0 }]
    server.script(completion({ content: 'So.', reasoning: 'Looked.', reasoning_details: details }))
    const { content } = await model.doGenerate({ prompt: hello })
    expect(content).toMatchObject([
      { type: 'reasoning', text: 'Looked.', providerMetadata: { sluice: { kind: 'openrouter', member: 'reasoning', details } } },
      { type: 'text', text: 'So.' },
    ])
  })

  // https://ai.google.dev/gemini-api/docs/thought-signatures
  it('Gemini gets the signature of a tool call back', async () => {
    const model = await load('openai')
    const extra_content = { google: { thought_signature: 'c2ln' } }
    server.script({ frames: [chunk({ tool_calls: [{ ...call, extra_content }] }, 'tool_calls'), DONE] })
    const [called] = (await collect(model)).filter((part) => part.type === 'tool-call')
    const kept: ModelPrompt[number] = {
      role: 'assistant',
      content: [
        {
          type: 'tool-call',
          toolCallId: 'c1',
          toolName: 'look',
          input: {},
          ...(called?.providerMetadata && { providerOptions: called.providerMetadata }),
        },
      ],
    }
    await model.doGenerate({ prompt: [...hello, kept, result] })
    expect(sentMessage()).toMatchObject({ tool_calls: [{ id: 'c1', extra_content }] })
  })

  it('DeepSeek accepts calls of an earlier turn, whose reasoning is not stored', async () => {
    const settings = { kind: 'deepseek', api_key: new Secret(server.apiKey), model: 'small', base_url: `${server.url}/deepseek/v1` }
    const model = await chatCompletions('deepseek', PRESETS.deepseek).load(settings, { fetch })
    const called: ModelPrompt[number] = {
      role: 'assistant',
      content: [{ type: 'tool-call', toolCallId: 'c1', toolName: 'look', input: {} }],
    }
    server.script({ text: 'Seen.' })
    const { content } = await model.doGenerate({ prompt: [...hello, called, result, ...hello] })
    expect(content).toMatchObject([{ type: 'text', text: 'Seen.' }])
    expect(sentMessage()).toMatchObject({ reasoning_content: ' ' })
    expect(server.requests).toMatchObject([{ refused: null }])
  })

  it('reasoning of another provider is not sent', async () => {
    const foreign: ModelPrompt[number] = {
      role: 'assistant',
      content: [
        { type: 'reasoning', text: 'secret', providerOptions: { anthropic: { signature: 's' } } },
        { type: 'reasoning', text: 'secret', providerOptions: { sluice: { kind: 'deepseek', member: 'reasoning_content', details: [] } } },
        { type: 'text', text: 'So.' },
      ],
    }
    await (await load('mistral')).doGenerate({ prompt: [...hello, foreign, ...hello] })
    expect(sentMessage()).toEqual({ role: 'assistant', content: 'So.' })
  })
})

describe('reasoning in tags at the start of the text', () => {
  it.each([
    ['<think>\nHm.\n</think>\n\nYes.', '\nHm.\n', 'Yes.'],
    ['\n<think></think>Yes.', '', 'Yes.'],
    ['<think>never ends', 'never ends', ''],
    ['The tag <think>a</think> stays.', '', 'The tag <think>a</think> stays.'],
    ['<thin ice', '', '<thin ice'],
    ['<think>a</thinker></think> b </think>', 'a</thinker>', 'b </think>'],
  ])('%j', async (content, reasoning, text) => {
    const model = await load('vllm')
    server.script(
      { frames: [...[...content].map((letter) => chunk({ content: letter })), chunk({}, 'stop'), DONE] },
      completion({ content }),
    )
    const parts = await collect(model)
    expect([deltas(parts, 'reasoning-delta'), deltas(parts, 'text-delta')]).toEqual([reasoning, text])
    const whole = (await model.doGenerate({ prompt: hello })).content
    const joined = (type: 'text' | 'reasoning') => whole.map((part) => (part.type === type ? part.text : '')).join('')
    expect([joined('reasoning'), joined('text')]).toEqual([reasoning, text])
  })
})
