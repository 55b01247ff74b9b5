import type { LanguageModel } from '@sluice/sdk'
import { Secret } from '@sluice/sdk'
import { CHAT_DIALECTS, type ModelServer, type ModelStep, startModelServer } from '@sluice/testkit/model-server'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { chatCompletions } from './chat-completions.ts'
import { PRESETS } from './presets.ts'
import { chunk, collect, DONE, deltas, hello } from './testing.ts'

let server: ModelServer
let learnt: string[]
beforeEach(async () => {
  server = await startModelServer()
  learnt = []
})
afterEach(() => server.close())

const load = (kind: keyof typeof PRESETS): Promise<LanguageModel> =>
  chatCompletions(kind, PRESETS[kind]).load(
    { kind, base_url: `${server.url}${kind in CHAT_DIALECTS ? `/${kind}` : ''}/v1`, api_key: new Secret(server.apiKey), model: 'small' },
    { fetch, onLimit: (label) => learnt.push(label) },
  )

const tools = [{ type: 'function' as const, name: 'look', inputSchema: { type: 'object' as const, properties: {} } }]
const options = { prompt: hello, maxOutputTokens: 50, temperature: 0.2, tools }
const instructed = {
  ...options,
  prompt: [{ role: 'system' as const, content: 'Be brief.' }, ...hello],
  toolChoice: { type: 'auto' as const },
}
const bodies = () => server.requests.map(({ body }) => body as Record<string, unknown>)

describe('a limit is learnt from one refusal', () => {
  it.each<[limit: string, refusal: ModelStep, gone: string[], sent: object]>([
    // https://github.com/BerriAI/litellm/issues/34569
    [
      "takes tools only with reasoning_effort 'none'",
      {
        status: 400,
        body: {
          error: {
            message:
              "Function tools with reasoning_effort are not supported for this model in /v1/chat/completions. To use function tools, use /v1/responses or set reasoning_effort to 'none'.",
            type: 'invalid_request_error',
            param: 'reasoning_effort',
            code: null,
          },
        },
      },
      [],
      { reasoning_effort: 'none', tools: [{ function: { name: 'look' } }] },
    ],
    // https://github.com/ollama/ollama/issues/11131
    [
      'does not support tools',
      { status: 400, body: { error: { message: 'registry.ollama.ai/library/gemma3:12b does not support tools', type: 'api_error' } } },
      ['tools', 'tool_choice'],
      {},
    ],
    [
      'does not support tools',
      { status: 404, body: { error: { code: 404, message: 'No endpoints found that support tool use. Try disabling "look".' } } },
      ['tools', 'tool_choice'],
      {},
    ],
    // https://github.com/vllm-project/vllm/issues/9986
    [
      'does not support tools',
      {
        status: 400,
        body: {
          object: 'error',
          message: '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set',
          type: 'BadRequestError',
          param: null,
          code: 400,
        },
      },
      ['tools', 'tool_choice'],
      {},
    ],
    // https://github.com/containers/ramalama/issues/988
    [
      'does not support tools',
      { status: 500, body: { error: { code: 500, message: 'tools param requires --jinja flag', type: 'server_error' } } },
      ['tools', 'tool_choice'],
      {},
    ],
    // https://github.com/ggml-org/llama.cpp/issues/10920
    [
      'does not support tools',
      { status: 500, body: { code: 500, message: 'Unsupported param: tools', type: 'server_error' } },
      ['tools', 'tool_choice'],
      {},
    ],
    // https://console.groq.com/docs/tool-use
    [
      'does not support tools',
      { status: 400, body: { error: { message: '`tool calling` is not supported with this model', type: 'invalid_request_error' } } },
      ['tools', 'tool_choice'],
      {},
    ],
    // https://github.com/teilomillet/gollm/issues/33
    [
      'takes max_completion_tokens instead of max_tokens',
      {
        status: 400,
        body: {
          error: {
            message: "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
            type: 'invalid_request_error',
            param: 'max_tokens',
            code: 'unsupported_parameter',
          },
        },
      },
      ['max_tokens'],
      { max_completion_tokens: 50 },
    ],
    [
      'takes only the default temperature',
      {
        status: 400,
        body: {
          error: {
            message: "Unsupported value: 'temperature' does not support 0.2 with this model. Only the default (1) value is supported.",
            type: 'invalid_request_error',
            param: 'temperature',
            code: 'unsupported_value',
          },
        },
      },
      ['temperature'],
      {},
    ],
    [
      'takes only the default temperature',
      { status: 400, body: { error: { message: 'invalid temperature: only 1 is allowed for this model', type: 'invalid_request_error' } } },
      ['temperature'],
      {},
    ],
    // The same refusal as the first one, in other marks
    [
      "takes tools only with reasoning_effort 'none'",
      {
        status: 400,
        body: {
          error: {
            message: 'Function tools with `reasoning_effort` are not supported. Use /v1/responses or set `reasoning_effort` to `none`.',
          },
        },
      },
      [],
      { reasoning_effort: 'none', tools: [{ function: { name: 'look' } }] },
    ],
    // https://ai.google.dev/gemma/docs/capabilities/function-calling
    [
      'does not support tools',
      { status: 400, body: [{ error: { code: 400, message: 'Function calling is not enabled for models/gemma-3-27b-it' } }] },
      ['tools', 'tool_choice'],
      {},
    ],
    // https://docs.sglang.ai/advanced_features/tool_parser.html
    [
      'does not support tools',
      {
        status: 400,
        body: { object: 'error', message: 'Tool choice auto requires --tool-call-parser', type: 'BadRequestError', code: 400 },
      },
      ['tools', 'tool_choice'],
      {},
    ],
    [
      'does not support tools',
      { status: 400, body: { error: { message: "Unsupported parameter: 'tools' is not supported with this model.", param: 'tools' } } },
      ['tools', 'tool_choice'],
      {},
    ],
    // https://api-docs.deepseek.com/guides/thinking_mode
    [
      'does not take tool_choice',
      { status: 400, body: { error: { message: 'deepseek-reasoner does not support this tool_choice', type: 'invalid_request_error' } } },
      ['tool_choice'],
      { tools: [{ function: { name: 'look' } }] },
    ],
    // https://github.com/vllm-project/vllm/issues, the chat template of Gemma
    [
      'does not take system messages',
      { status: 400, body: { object: 'error', message: 'System role not supported', type: 'BadRequestError', param: null, code: 400 } },
      [],
      {
        messages: [
          {
            role: 'user',
            content: [
              { type: 'text', text: 'Be brief.' },
              { type: 'text', text: 'hello' },
            ],
          },
        ],
      },
    ],
  ])('%s', async (limit, refusal, gone, sent) => {
    const model = await load('vllm')
    server.script(refusal)
    const { content } = await model.doGenerate(instructed)
    expect(content).toMatchObject([{ type: 'text', text: expect.stringContaining('hello') }])
    expect(bodies()).toHaveLength(2)
    await model.doStream(instructed)
    for (const body of bodies().slice(1)) {
      expect(body).toMatchObject(sent)
      for (const name of gone) expect(body).not.toHaveProperty(name)
    }
    expect(learnt).toEqual([limit])
  })

  // https://github.com/editor-code-assistant/eca/issues/231
  it('takes max_tokens instead of max_completion_tokens', async () => {
    const detail = [{ type: 'extra_forbidden', loc: ['body', 'max_completion_tokens'], msg: 'Extra inputs are not permitted', input: 50 }]
    server.script({ status: 422, body: { object: 'error', message: { detail }, type: 'invalid_request_error', param: null, code: null } })
    await (await load('groq')).doGenerate(options)
    expect(bodies()).toMatchObject([{ max_completion_tokens: 50 }, { max_tokens: 50 }])
  })

  it('does not take reasoning_effort', async () => {
    const message = "Unsupported parameter: 'reasoning_effort' is not supported with this model."
    server.script({ status: 400, body: { error: { message, param: 'reasoning_effort', code: 'unsupported_parameter' } } })
    await (await load('vllm')).doGenerate({ ...options, providerOptions: { vllm: { reasoningEffort: 'high' } } })
    expect(bodies()).toMatchObject([{ reasoning_effort: 'high' }, {}])
    expect(bodies()[1]).not.toHaveProperty('reasoning_effort')
    expect(learnt).toEqual(['does not take reasoning_effort'])
  })

  it('only once: a model that refuses again fails', async () => {
    const refusal = { status: 400, body: { error: { message: 'small does not support tools' } } }
    server.script(refusal, refusal)
    await expect((await load('vllm')).doGenerate(options)).rejects.toMatchObject({ statusCode: 400 })
    expect(bodies()).toHaveLength(2)
  })

  it.each<[string, ModelStep]>([
    ['another reason', { status: 400, body: { error: { message: 'The prompt is too long' } } }],
    ['another status', { status: 503, body: { error: { message: 'small does not support tools' } } }],
  ])('not from %s', async (_why, refusal) => {
    server.script(refusal)
    await expect((await load('vllm')).doGenerate(options)).rejects.toThrow()
    expect([bodies().length, learnt]).toEqual([1, []])
  })
})

it('a preset knows the members of its service', async () => {
  await (await load('groq')).doGenerate(options)
  const mistral = await load('mistral')
  await mistral.doGenerate(options)
  await collect(mistral)
  expect(bodies()).toMatchObject([{ max_completion_tokens: 50 }, { max_tokens: 50 }, { stream: true }])
  expect(bodies()[0]).not.toHaveProperty('max_tokens')
  expect(bodies()[2]).not.toHaveProperty('stream_options')
})

describe('the end of a stream', () => {
  const frames = [chunk({ content: 'all' }), chunk({ content: ' of it' })]

  it.each([1, 7, 1000])('[DONE] without a finish reason is a complete reply (pieces of %i bytes)', async (pieceBytes) => {
    server.script({ frames: [...frames, DONE], pieceBytes })
    const parts = await collect(await load('vllm'))
    expect(deltas(parts, 'text-delta')).toBe('all of it')
    expect(parts.at(-1)).toMatchObject({ type: 'finish', finishReason: { unified: 'stop' } })
  })

  it('a reason that came before [DONE] stays', async () => {
    server.script({ frames: [...frames, chunk({}, 'length'), DONE] })
    expect((await collect(await load('vllm'))).at(-1)).toMatchObject({ finishReason: { unified: 'length' } })
  })

  it('a stream without both is a failure', async () => {
    server.script({ frames: [...frames, chunk({ content: 'data: [DONE]' })] })
    expect((await collect(await load('vllm'))).at(-1)).toMatchObject({ finishReason: { unified: 'error' } })
  })
})
