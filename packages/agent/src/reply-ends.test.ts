import type { AgentConfig } from '@sluice/config'
import type { LanguageModel, ModelMessage, Tool } from '@sluice/sdk'
import { describe, expect, test } from 'vitest'
import { type Reply, type ScriptedModel, scriptedModel } from './testing/scripted-model.ts'
import { request, testAgent, testTool } from './testing/test-agent.ts'
import type { TurnPart } from './turn/turn.ts'

/** Runs one turn, with a listener when `streamed`. */
async function runTurn(
  model: LanguageModel,
  streamed: boolean,
  { tools = [testTool('look', () => 'seen')], ...limits }: Partial<AgentConfig> & { readonly tools?: readonly Tool[] } = {},
) {
  const heard: string[] = []
  const setup = testAgent({ models: [model], tools, agent: { max_retries: 0, ...limits } })
  const listen = (part: TurnPart) => part.type === 'text' && heard.push(part.delta)
  const outcome = await setup.agent.run(request('question', { session: 'web:a', ...(streamed && { listen }) })).then(
    (result) => ({ result, error: undefined }),
    (error) => ({ result: undefined, error }),
  )
  return { ...setup, ...outcome, heard: heard.join('') }
}

const assistant = (model: ScriptedModel, call: number) =>
  model.asked[call]?.prompt.filter((message): message is Extract<ModelMessage, { role: 'assistant' }> => message.role === 'assistant')

describe.each([
  ['whole', false],
  ['streamed', true],
] as const)('a %s reply', (_name, streamed) => {
  test.each([
    ['length', undefined, 'length', 'has used up its output tokens'],
    ['content-filter', 'content_filter', 'content_filter', 'cut off by the content filter'],
    ['content-filter', 'refusal', 'refusal', 'declined to answer'],
    ['content-filter', 'stop', 'refusal', 'declined to answer'],
  ] as const)('that ends with %s (%s) is marked as %s', async (finish, raw, reason, note) => {
    const { result, heard, events, books } = await runTurn(scriptedModel([{ text: 'One, two,', finish, raw } as Reply]), streamed, {
      max_output_tokens: 4,
    })
    expect(result).toMatchObject({ finishReason: reason, text: expect.stringMatching(/^One, two,\n\n\[.*\]$/) })
    expect(result?.text).toContain(note)
    if (streamed) expect(heard).toBe(result?.text)
    expect(events).toContainEqual(expect.objectContaining({ type: 'turn_completed', finish_reason: reason }))
    expect(books.ends).toMatchObject([{ status: 'done', finishReason: reason, response: result?.text }])
    expect(books.ends[0]?.messages.at(-1)).toEqual({ role: 'assistant', content: [{ type: 'text', text: 'One, two,' }] })
  })

  test.each(['stop', 'other'] as const)('that ends with %s is complete', async (finish) => {
    const { result } = await runTurn(scriptedModel([{ text: 'done', finish, raw: 'invented_later' }]), streamed)
    expect(result).toMatchObject({ finishReason: 'stop', text: 'done' })
  })

  test('that is cut within its text is continued, and the answer is one text', async () => {
    const model = scriptedModel([{ text: 'One, tw', finish: 'length' }, { text: 'o, thr', finish: 'length' }, { text: 'ee.' }])
    const { result, heard, books } = await runTurn(model, streamed)
    expect(result).toMatchObject({ text: 'One, two, three.', finishReason: 'stop' })
    if (streamed) expect(heard).toBe('One, two, three.')
    expect(assistant(model, 2)).toEqual([{ role: 'assistant', content: [{ type: 'text', text: 'One, two, thr' }] }])
    expect(model.asked[2]?.prompt.at(-1)).toMatchObject({ role: 'user', content: [{ text: expect.stringContaining('Continue') }] })
    expect(books.ends[0]?.messages).toEqual([
      { role: 'user', content: [{ type: 'text', text: 'question' }] },
      { role: 'assistant', content: [{ type: 'text', text: 'One, two, three.' }] },
    ])
  })

  test('that is cut again and again is continued twice and then marked', async () => {
    const model = scriptedModel(['a', 'b', 'c', 'd'].map((text) => ({ text, finish: 'length' })))
    const { result, heard } = await runTurn(model, streamed)
    expect(result).toMatchObject({ finishReason: 'length', text: expect.stringMatching(/^abc\n\n\[/) })
    if (streamed) expect(heard).toBe(result?.text)
    expect(model.asked).toHaveLength(3)
  })

  test('that is cut at the last step of the turn is marked', async () => {
    const model = scriptedModel([{ text: 'One,', finish: 'length' }, { text: ' two.' }])
    const { result } = await runTurn(model, streamed, { max_iterations: 1 })
    expect(result).toMatchObject({ finishReason: 'length', text: expect.stringMatching(/^One,\n\n\[/) })
    expect(model.asked).toHaveLength(1)
  })

  test('whose continuation fails is marked', async () => {
    const model = scriptedModel([{ text: 'One,', finish: 'length' }, { finish: 'content-filter' }])
    const { result } = await runTurn(model, streamed)
    expect(result).toMatchObject({ finishReason: 'length', text: expect.stringMatching(/^One,\n\n\[/) })
  })

  test('whose continuation calls a tool goes on with its result', async () => {
    const model = scriptedModel([
      { text: 'I loo', finish: 'length' },
      { text: 'k.', calls: [{ name: 'look', input: {} }] },
      { text: 'Seen.' },
    ])
    const { result } = await runTurn(model, streamed)
    expect(result).toMatchObject({ text: 'Seen.', finishReason: 'stop' })
    expect(assistant(model, 2)).toMatchObject([{ content: [{ text: 'I look.' }, { type: 'tool-call', toolName: 'look' }] }])
  })

  test('that ends within a tool call does not run that call', async () => {
    const ran: string[] = []
    const look = testTool('look', (key) => {
      ran.push(key)
      return 'seen'
    })
    const calls = [
      { name: 'look', input: {} },
      { name: 'look', input: { key: 'half' } },
    ]
    const model = scriptedModel([{ calls, finish: 'length' }, { text: 'sorry' }])
    const { result } = await runTurn(model, streamed, { tools: [look] })
    expect(result).toMatchObject({ text: 'sorry', finishReason: 'stop' })
    expect(ran).toHaveLength(1)
    expect(JSON.stringify(model.asked[1]?.prompt.at(-1))).toContain('the reply ended within this call')
  })

  test('that the provider pauses is continued, and its parts are one answer', async () => {
    const model = scriptedModel([{ text: 'I searched, ', raw: 'pause_turn' }, { text: 'and found it.' }])
    const { result, heard, books } = await runTurn(model, streamed)
    expect(result).toMatchObject({ text: 'I searched, and found it.', finishReason: 'stop' })
    expect(assistant(model, 1)).toMatchObject([{ content: [{ text: 'I searched, ' }] }])
    if (streamed) expect(heard).toBe('I searched, and found it.')
    expect(books.ends[0]?.messages.map(({ role }) => role)).toEqual(['user', 'assistant'])
  })

  test('with a tool that the provider ran does not run it again, and sends its work back', async () => {
    const searched: NonNullable<Reply['parts']> = [
      { type: 'tool-call', toolCallId: 'srv_1', toolName: 'look', input: '{"query":"x"}', providerExecuted: true },
      { type: 'tool-result', toolCallId: 'srv_1', toolName: 'look', result: { found: 1 } },
      { type: 'custom', kind: 'vendor.mark', providerMetadata: { vendor: { itemId: 'm1' } } },
    ]
    const model = scriptedModel([{ parts: searched, calls: [{ name: 'look', input: {} }] }, { text: 'Found one.' }])
    const ran: string[] = []
    const look = testTool('look', (key) => {
      ran.push(key)
      return 'seen'
    })
    const { result, books } = await runTurn(model, streamed, { tools: [look] })
    expect(result).toMatchObject({ text: 'Found one.' })
    expect(ran).toEqual(['none'])
    expect(assistant(model, 1)).toMatchObject([
      {
        content: [
          { type: 'tool-call', toolCallId: 'srv_1', providerExecuted: true, input: { query: 'x' } },
          { type: 'tool-result', toolCallId: 'srv_1', output: { type: 'json', value: { found: 1 } } },
          { type: 'custom', kind: 'vendor.mark', providerOptions: { vendor: { itemId: 'm1' } } },
          { type: 'tool-call', toolName: 'look' },
        ],
      },
    ])
    expect(JSON.stringify(books.ends[0]?.messages)).not.toContain('srv_1')
  })

  test("keeps the provider's summary of the conversation out of the answer", async () => {
    const summary = { type: 'text' as const, text: 'Summary: hello.', providerMetadata: { anthropic: { type: 'compaction' } } }
    const { result, heard, books } = await runTurn(scriptedModel([{ parts: [summary], text: 'Here.' }]), streamed)
    expect(result).toMatchObject({ text: 'Here.' })
    expect(heard).toBe(streamed ? 'Here.' : '')
    expect(JSON.stringify(books.ends[0]?.messages)).not.toContain('Summary')
  })

  test('with parts of unknown types is read without them', async () => {
    const unknown = { type: 'hologram', id: '1' } as never
    const { result } = await runTurn(scriptedModel([{ parts: [unknown], text: 'fine' }]), streamed)
    expect(result).toMatchObject({ text: 'fine' })
  })
})

test('a refusal without a text is a failure that names it', async () => {
  const { error } = await runTurn(scriptedModel([{ finish: 'content-filter', raw: 'refusal' }]), false)
  expect(error).toMatchObject({ code: 'upstream', message: expect.stringContaining('refused to answer') })
})

test('a resumed turn does not run the calls that the provider ran', async () => {
  const model = scriptedModel([{ text: 'going on' }])
  const ran: string[] = []
  const { agent, books } = testAgent({ models: [model], tools: [testTool('look', (key) => `${ran.push(key)}`)] })
  await books.turns.enqueue({ id: 't1', agent: 'main', sessionId: null, source: 'test', input: 'question', context: {}, createdAtMs: 0 })
  await books.turns.checkpoint('t1', [
    { role: 'user', content: [{ type: 'text', text: 'question' }] },
    {
      role: 'assistant',
      content: [{ type: 'tool-call', toolCallId: 'srv_1', toolName: 'look', input: {}, providerExecuted: true }],
    },
  ])
  await agent.resume(books)
  await agent.ended('t1')
  expect(ran).toEqual([])
  expect(books.ends).toMatchObject([{ id: 't1', status: 'done', response: 'going on' }])
})
