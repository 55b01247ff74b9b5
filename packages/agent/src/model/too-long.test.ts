import { describe, expect, test } from 'vitest'
import { memoryBooks } from '../testing/memory-books.ts'
import { httpError, type Reply, scriptedModel, streamingModel } from '../testing/scripted-model.ts'
import { request, testAgent, testTool } from '../testing/test-agent.ts'
import { modelFailure } from './model-failure.ts'
import { isTooLong, partThatFits } from './too-long.ts'

/** The refusals of services and local servers, as their references, sources and public issue threads show them. */
const REFUSALS: readonly [service: string, message: string, status?: number | undefined, name?: string][] = [
  [
    'OpenAI',
    "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.",
    400,
    'context_length_exceeded',
  ],
  ['OpenAI, responses', 'Your input exceeds the context window of this model. Please adjust your input and try again.', 400],
  ['Anthropic', 'prompt is too long: 210000 tokens > 200000 maximum', 400, 'invalid_request_error'],
  [
    'Anthropic, with the answer',
    'input length and `max_tokens` exceed context limit: 199211 + 20000 > 200000, decrease input length or `max_tokens`',
    400,
  ],
  ['Anthropic, bytes', 'Request exceeds the maximum size', 413, 'request_too_large'],
  ['Google', 'The input token count (1048577) exceeds the maximum number of tokens allowed (1048575).', 400, 'INVALID_ARGUMENT'],
  ['Mistral', 'Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length', 400],
  ['Groq', 'Please reduce the length of the messages or completion.', 400],
  ['Cerebras', 'Please reduce the length of the messages or completion. Current length is 9000 while limit is 8192', 400],
  ['xAI', "This model's maximum prompt length is 131072 but the request contains 537812 tokens.", 400],
  ['Cohere', 'too many tokens: size limit exceeded by 1234 tokens. Try using shorter or fewer inputs', 400],
  ['Amazon Bedrock', 'Input is too long for requested model.', 400],
  ['Moonshot', 'Invalid request: Your request exceeded model token limit: 8192', 400],
  ['Qwen', '<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 30720]', 400],
  ['Zhipu', 'Prompt exceeds max length', 400],
  ['Fireworks', 'The prompt is too long: 5000, model maximum context length: 4096', 400],
  ['OpenRouter', "This endpoint's maximum context length is 32768 tokens. However, you requested about 40000 tokens", 400],
  ['GitHub', 'prompt token count of 130000 exceeds the limit of 128000', 400],
  ['vLLM', "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens in the messages", 400],
  ['vLLM, engine', 'The decoder prompt (length 5000) is longer than the maximum model length of 4096.', 400],
  ['llama.cpp', 'the request exceeds the available context size. try increasing the context size or enable context shift', 400],
  ['llama.cpp, by type', 'it does not fit', 500, 'exceed_context_size_error'],
  [
    'LM Studio',
    'Trying to keep the first 5000 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens',
    400,
  ],
  ['Ollama', 'the input length exceeds the context length', 400],
  ['Text Generation Inference', 'Input validation error: `inputs` must have less than 4096 tokens. Given: 5000', 422],
  ['Together', 'Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4097. Given: 5000 `inputs` tokens', 422],
  ['in a stream, without a status', 'context window exceeds limit', undefined],
  // https://cloud.google.com/vertex-ai/generative-ai/docs/model-reference/api-errors and public issue threads
  [
    'Vertex AI',
    'Unable to submit request because the input token count is 1100000 but the model supports up to 1048576. Reduce the input token count and try again.',
    400,
  ],
  // https://github.com/theroyallab/tabbyAPI/issues
  ['TabbyAPI', 'Prompt length 5000 is greater than max_seq_len 4096', 400],
  // https://cloud.baidu.com/doc/qianfan-api
  ['Qianfan', 'prompt tokens too long', 400],
  ['Databricks', 'Input tokens 50000 exceeds the model limit 32768', 400],
  // https://github.com/NVIDIA/TensorRT-LLM/issues
  ['TensorRT-LLM', 'default_max_tokens (-100) must be greater than 0, max_seq_len (4096) - splited_prompt_len (4196)', 400],
  // https://console.groq.com/docs/rate-limits: one request above the limit of a minute never passes
  [
    'Groq, one request above the limit of a minute',
    'Request too large for model `m` on tokens per minute (TPM): Limit 6000, Requested 7421, please reduce your message size and try again.',
    413,
    'rate_limit_exceeded',
  ],
  [
    'OpenAI, one request above the limit of a minute',
    'Request too large for m on tokens per min (TPM): Limit 30000, Requested 45000. The input or output tokens must be reduced in order to run successfully.',
    429,
    'rate_limit_exceeded',
  ],
  ['a proxy before the server', 'Request Entity Too Large', 413],
  // https://ai.google.dev/gemini-api/docs/files: the limit of a whole request
  ['Google, bytes', 'Request payload size exceeds the limit: 20971520 bytes.', 400, 'INVALID_ARGUMENT'],
  [
    'Vertex AI, by the tokens of the request',
    'Unable to submit request because it has 1100000 tokens, but the model accepts up to 1048576',
    400,
  ],
  // https://github.com/BerriAI/litellm: litellm/exceptions.py
  ['LiteLLM', 'litellm.ContextWindowExceededError: the request was refused', 400],
  ['LiteLLM, by type', 'the request was refused', 400, 'ContextWindowExceededError'],
  // https://github.com/microsoft/vscode-copilot-chat/issues
  ['GitHub, by code', 'the request was refused', 400, 'model_max_prompt_tokens_exceeded'],
  ['GitHub, 8,000 tokens', 'Request body too large for gpt-4o model. Max size: 8000 tokens.', 413, 'tokens_limit_reached'],
  // https://github.com/vllm-project/vllm/issues: the default of max_tokens is the room that the prompt leaves
  ['vLLM, without room for a reply', 'max_tokens must be at least 1, got -904.', 400],
  // https://github.com/ggml-org/llama.cpp, tools/server: versions of 2024
  ['llama.cpp, of 2024', 'Input prompt is too big compared to KV size. Please try increasing KV size.', 500],
  // https://docs.bigmodel.cn/cn/faq/api-code: code 1261
  ['Zhipu, in Chinese', 'Prompt 超长', 400, '1261'],
  ['Chinese, the window', '超出模型最大上下文长度', 400],
  ['Chinese, the input', '输入长度超过限制', 400],
  // https://www.volcengine.com/docs/82379/1299023
  ['Volcengine', 'Total tokens of image and text exceed max message tokens. Request id: 0217', 400, 'OutofContextError'],
  ['by the length of the input', 'Input length 131073 exceeds the maximum length 131072', 400],
  ['by the length of the prompt', 'Prompt length 9000 exceeds maximum 8192', 400],
  ['by the length of the messages', 'the length of messages exceeds the limit', 400],
  ['by the number that is supported', 'Your input has 9000 tokens, but this model only supports up to 4096', 400],
  ['in few words', 'Request too long', 400],
  ['of a message', 'Message is too long', 400],
  // https://openrouter.ai/docs/api-reference/errors: a provider that refuses is reported as a bad gateway
  [
    'a router, as a bad gateway',
    "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.",
    502,
  ],
  ['a router, as a missing endpoint', 'prompt is too long: 210000 tokens > 200000 maximum', 404],
]

describe('a refusal for length is recognised', () => {
  test.each(REFUSALS)('%s', (_service, message, status, name = '') => {
    expect(isTooLong({ name, message, status })).toBe(true)
  })

  test.each([
    ['Rate limit reached for tokens per min (TPM): Limit 30000, Requested 40000, too many tokens', 429],
    ["'messages.3' is not a known field", 400],
    ['Incorrect API key provided', 401],
    ['Invalid image: it is larger than 5 MB', 400],
    ['max_tokens is too large: 9000. This model supports at most 4096 completion tokens', 400],
    ['tools[0].function.name is longer than 64 characters', 400],
    ['Please reduce the number of tools', 400],
    ["Invalid 'tools': array too long. Expected an array with maximum length 128, but got an array with length 200 instead.", 400],
    ['Rate limit reached for m on tokens per min (TPM): Limit 30000, Used 29000, Requested 4000. Please try again in 6s.', 429],
    ["This request would exceed your organization's rate limit of 30,000 input tokens per minute", 429],
    ['The model is overloaded: the token limit of this minute is exceeded', 503],
    ['max_tokens must be at least 1, got 0.', 400],
    ['The long context beta is not yet available for this subscription.', 400],
    ["Invalid 'messages[0].name': string too long. Expected a string with maximum length 64", 400],
    ['余额不足或无可用资源包,请充值。', 429],
    ['The name of the message is too long for the header', 401],
  ])('but not %s', (message, status) => {
    expect(isTooLong({ name: '', message, status })).toBe(false)
  })

  test('in the body of an answer and in a frame of a stream', () => {
    const message = 'prompt is too long: 210000 tokens > 200000 maximum'
    const options = { nowMs: 0, scrub: (text: string) => text }
    const frame = { type: 'error', error: { type: 'invalid_request_error', message } }
    const answer = Object.assign(httpError(400), { responseBody: JSON.stringify(frame) })
    for (const error of [answer, frame.error, httpError(400, message)])
      expect(modelFailure(error, options)).toMatchObject({ repeat: 'never', fits: expect.closeTo(0.857, 3) })
    expect(modelFailure(httpError(400, 'no'), options).fits).toBeUndefined()
  })

  test('and counts as too big for a limit of bytes, so that the files of the request are looked at', () => {
    const message = 'Request payload size exceeds the limit: 20971520 bytes.'
    expect(modelFailure(httpError(400, message), { nowMs: 0, scrub: (text: string) => text })).toMatchObject({ isTooBig: true, fits: 0.5 })
  })

  test('in an error under HTTP status 200, in a body without JSON, and in the words of a service behind a router', () => {
    const message = "This model's maximum context length is 4096 tokens. However, you requested 8192 tokens"
    const fits = (status: number, body: unknown) =>
      modelFailure(
        Object.assign(httpError(status, 'Bad Request'), { responseBody: typeof body === 'string' ? body : JSON.stringify(body) }),
        { nowMs: 0, scrub: (text: string) => text },
      ).fits
    expect(fits(200, { error: { type: 'invalid_request_error', message } })).toBeCloseTo(0.45)
    expect(fits(400, message)).toBeCloseTo(0.45)
    // Cloudflare: https://developers.cloudflare.com/workers-ai/platform/errors
    expect(fits(400, { success: false, errors: [{ message, code: 5021 }] })).toBeDefined()
    // https://platform.minimax.io/docs/api-reference/errorcode
    const refused = { status_code: 2013, status_msg: 'invalid params, context window exceeds limit (2013)' }
    expect(fits(200, { choices: null, base_resp: refused })).toBeDefined()
    expect(fits(200, { choices: null, base_resp: { status_code: 0, status_msg: 'context window exceeds limit' } })).toBeUndefined()
    // https://openrouter.ai/docs/api-reference/errors: `metadata` has the provider's own answer
    const routed = (raw: unknown) => ({ error: { code: 400, message: 'Provider returned error', metadata: { provider_name: 'x', raw } } })
    expect(fits(400, routed(JSON.stringify({ error: { message } })))).toBeCloseTo(0.45)
    expect(fits(400, routed({ message }))).toBeCloseTo(0.45)
    expect(fits(400, routed('This field is not supported'))).toBeUndefined()
  })

  test.each([
    ['maximum context length is 8192 tokens. However, you requested 16384 tokens', 0.45],
    ['maximum prompt length is 131,072 but the request contains 262,144 tokens', 0.45],
    ['Input is too long for requested model.', 0.5],
    ['a limit of 8192 tokens', 0.5],
    // https://docs.claude.com/en/docs/build-with-claude/context-windows
    ['prompt is too long: 210000 tokens > 200000 maximum', 0.857],
    ['input length and `max_tokens` exceed context limit: 190000 + 64000 > 200000, decrease input length or `max_tokens`', 0.644],
    ['input length and `max_tokens` exceed context limit: 1000 + 200000 > 200000', 0.5],
    ['the context window of claude-sonnet-4-20250514 takes 200000 tokens, and the request req_4096 has 400000', 0.45],
    [
      "This model's maximum context length is 8192 tokens. However, you requested 10000 tokens (6000 in the messages, 4000 in the completion).",
      0.629,
    ],
    [
      "This model's maximum context length is 4097 tokens, however you requested 5097 tokens (4097 in your prompt; 1000 for the completion).",
      0.68,
    ],
    [
      "'max_tokens' is too large: 2000. This model's maximum context length is 8192 tokens and your request has 7000 input tokens (2000 > 8192 - 7000).",
      0.796,
    ],
  ])('with the part that fits: %s', (message, part) => {
    expect(partThatFits(message)).toBeCloseTo(part, 3)
  })
})

/** A model with a window: it refuses a longer conversation, as vLLM does. */
const windowed = (tokensMax: number, reply: Reply | (() => Reply) = { text: 'fine' }) =>
  scriptedModel([
    ({ prompt }) => {
      const tokens = Math.ceil(JSON.stringify(prompt).length / 4)
      if (tokens > tokensMax)
        throw httpError(400, `This model's maximum context length is ${tokensMax} tokens. However, you requested ${tokens} tokens`)
      return typeof reply === 'function' ? reply() : reply
    },
  ])
const words = (tokens: number) => 'word'.repeat(tokens)

describe('a conversation that is longer than the window of the model', () => {
  test('is shortened and asked again, and the answer says so', async () => {
    const model = windowed(3000)
    const { agent } = testAgent({ models: [model] })
    for (let turn = 0; turn < 8; turn++) {
      const { text } = await agent.run(request('a', { session: 's', text: `question ${turn} ${words(900)}` }))
      expect(text).toMatch(/^fine/)
    }
    const refused = model.asked.filter(({ prompt }) => JSON.stringify(prompt).length / 4 > 3000)
    // The window is learnt: later turns are not refused again.
    expect(refused.length).toBeLessThanOrEqual(2)
    expect(model.asked.filter(({ prompt }) => JSON.stringify(prompt).includes('question 7'))).toHaveLength(1)
  })

  test('is summarised after the refusal, and nothing is left out', async () => {
    const isSummary = (prompt: unknown) => JSON.stringify(prompt).includes('You write the memory of an assistant')
    const model = scriptedModel([
      ({ prompt }) => {
        const tokens = Math.ceil(JSON.stringify(prompt).length / 4)
        if (tokens > 2500) throw httpError(400, 'Input is too long for requested model.')
        return { text: isSummary(prompt) ? 'the key is 4711' : 'fine' }
      },
    ])
    const { agent, books } = testAgent({ models: [model] })
    for (let turn = 0; turn < 6; turn++)
      expect((await agent.run(request('a', { session: 's', text: `question ${turn} ${words(600)}` }))).text).toBe('fine')
    expect(books.summaries.get('s')?.text).toBe('the key is 4711')
    expect(JSON.stringify(model.asked.at(-1)?.prompt)).toContain('the key is 4711')
  })

  test.each(REFUSALS.filter(([, , status]) => status !== undefined))(
    'goes on in the same turn after the refusal of %s',
    async (_service, message, status = 400, name = '') => {
      const books = memoryBooks()
      const said = (role: 'user' | 'assistant', text: string) => ({ role, content: [{ type: 'text' as const, text }] })
      books.histories.set('s', [
        said('user', `The key is 4711. ${words(900)}`),
        said('assistant', words(900)),
        said('user', 'Thanks.'),
        said('assistant', 'Yes.'),
      ])
      const isSummary = (prompt: unknown) => JSON.stringify(prompt).includes('You write the memory of an assistant')
      let refusals = 0
      const model = scriptedModel([
        ({ prompt }) => {
          if (isSummary(prompt)) return { text: 'the key is 4711' }
          if (refusals++ > 0) return { text: 'fine' }
          throw Object.assign(httpError(status), { responseBody: JSON.stringify({ error: { type: name, code: name, message } }) })
        },
      ])
      const { agent } = testAgent({ models: [model], books })
      expect((await agent.run(request('And now?', { session: 's' }))).text).toBe('fine')
      expect(JSON.stringify(model.asked.at(-1)?.prompt)).toContain('the key is 4711')
    },
  )

  test('says what was left out only in the turn whose request was refused', async () => {
    const model = windowed(1500)
    const { agent } = testAgent({ models: [model], agent: { summarize_history: false } })
    const texts: string[] = []
    for (let turn = 0; turn < 4; turn++) texts.push((await agent.run(request('a', { session: 's', text: words(600) }))).text)
    expect(texts.filter((text) => text.includes('did not fit into the window of the model'))).toHaveLength(1)
  })

  test('within one turn: long results are cut', async () => {
    let calls = 0
    const model = windowed(2000, () => (calls++ < 3 ? { calls: [{ name: 'look', input: { n: calls } }] } : { text: 'fine' }))
    const { agent } = testAgent({ models: [model], tools: [testTool('look', () => words(1500))] })
    const { text } = await agent.run(request('a', { session: 's' }))
    expect(text).toMatch(/^fine/)
    expect(calls).toBe(4)
  })

  test('and cannot be shortened enough ends after four requests', async () => {
    const model = windowed(10)
    const { agent } = testAgent({ models: [model] })
    await expect(agent.run(request('a', { session: 's' }))).rejects.toMatchObject({ code: 'upstream', refusedFor: 'request' })
    expect(model.asked).toHaveLength(4)
    // Nothing is learnt from refusals that a shorter conversation did not end.
    const again = agent.run(request('b', { session: 's', text: words(300) }))
    await expect(again).rejects.toMatchObject({ refusedFor: 'request' })
    expect(JSON.stringify(model.asked[4]?.prompt)).toContain(words(300))
  })

  test('in a stream is asked again, unless a listener has received a part of the answer', async () => {
    const error = Object.assign(new Error('prompt is too long: 210000 tokens > 200000 maximum'), {
      name: 'AI_APICallError',
      statusCode: 400,
    })
    const heard = streamingModel([{ type: 'text-start', id: 't' }, { type: 'text-delta', id: 't', delta: 'Hel' }, error])
    const { agent } = testAgent({ models: [heard] })
    await expect(agent.run(request('a', { session: 's', listen: () => {} }))).rejects.toMatchObject({ code: 'upstream' })
  })
})
