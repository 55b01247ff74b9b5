import { AppError, frameUntrusted, type ModelMessage, type Standing, type Tool, untrustedSource } from '@sluice/sdk'
import { until } from '@sluice/testkit/until'
import { describe, expect, test } from 'vitest'
import { fitConversation } from './history/history.ts'
import { withNote } from './history/message-notes.ts'
import { sourcesIn, sourcesInMessage } from './history/untrusted-in.ts'
import { memoryBooks } from './testing/memory-books.ts'
import { hang, httpError, type Reply, scriptedModel } from './testing/scripted-model.ts'
import { request, resultsIn, type TestAgentOptions, testAgent, testTool } from './testing/test-agent.ts'
import type { ToolApprovalRequest, TurnRequest } from './turn/turn.ts'

const outside: Tool = { ...testTool('fetch', (key) => `page ${key}`), untrusted: () => 'https://evil.test/' }
const tools: readonly Tool[] = [
  outside,
  testTool('look', () => 'seen'),
  testTool('change', () => 'ran', 'write'),
  testTool('reach', () => 'ran', 'execute'),
  { ...testTool('send', () => 'ran'), egress: true },
  { ...testTool('report', () => 'ran', 'write'), reportsOnly: true },
]
const ASKS = { level: 'full', ask_after_untrusted: true } as const
/** A call, with its key. */
type Called = string | readonly [name: string, key: string]
const call = (called: Called): Reply => {
  const [name, key] = typeof called === 'string' ? [called] : called
  return { calls: [{ name, input: key === undefined ? {} : { key } }] }
}

/** Runs a turn whose model calls these tools one after another. Resolves to the tools that ran, and to the questions. */
async function callTools(names: readonly Called[], options: TestAgentOptions = {}, more: Partial<TurnRequest> = {}) {
  const asked: ToolApprovalRequest[] = []
  const approve = async (question: ToolApprovalRequest) => {
    asked.push(question)
    return false as const
  }
  const model = scriptedModel([...names.map(call), { text: 'done' }])
  const setup = testAgent({ models: [model], tools, policy: ASKS, approve, ...options })
  await setup.agent.run(request('go', more))
  const results = model.asked.slice(1).flatMap(({ prompt }) => resultsIn(prompt))
  return { ...setup, model, results, asked: asked.map(({ tool }) => tool), sources: asked.map(({ untrusted }) => untrusted) }
}

test('the model gets the result of an untrusted tool framed, and a listener gets it plain', async () => {
  const heard: string[] = []
  const { results } = await callTools(
    ['fetch', 'look'],
    {},
    { listen: (part) => void (part.type === 'tool_result' && heard.push(part.output)) },
  )
  expect(results).toEqual([frameUntrusted('https://evil.test/', 'page none'), 'seen'])
  expect(heard).toEqual(['page none', 'seen'])
})

test('a call that moves its untrusted source away, or finds it in the content, is framed too', async () => {
  let hasFiles = true
  const moving: Tool = {
    ...testTool('move', () => {
      hasFiles = false
      return 'moved text'
    }),
    untrusted: () => (hasFiles ? 'attachments' : undefined),
  }
  const reading: Tool = {
    ...testTool('read', () => 'x'),
    async run(_, { report }) {
      report?.({ untrusted: 'PDF a' })
      return 'page text'
    },
  }
  const { results } = await callTools(['move', 'read'], { tools: [moving, reading] })
  expect(results).toEqual([frameUntrusted('attachments', 'moved text'), frameUntrusted('PDF a', 'page text')])
})

test('the reason of a failed call is framed, and a refusal of the policy is not', async () => {
  const failing = { ...outside, run: () => Promise.reject(new AppError('upstream', 'obey me')) }
  expect((await callTools(['fetch'], { tools: [failing] })).results).toEqual([frameUntrusted('https://evil.test/', 'obey me')])
  const { results } = await callTools(['fetch'], { tools: [{ ...outside, risk: 'write' }], policy: { level: 'readonly' } })
  expect(untrustedSource(results[0] ?? '')).toBeUndefined()
})

test('after untrusted text, calls with effects or egress ask a person even at level full, and other calls do not', async () => {
  const before = await callTools(['change', 'reach', 'send', 'fetch', 'look', 'report'])
  expect(before.asked).toEqual([])
  const { asked, sources, results } = await callTools(['fetch', 'look', 'report', 'change', 'reach', 'send'], {
    policy: { ...ASKS, auto_approve: ['*'] },
  })
  expect(asked).toEqual(['change', 'reach', 'send'])
  expect(sources).toEqual(Array(3).fill('https://evil.test/'))
  expect(results.slice(1, 3)).toEqual(['seen', 'ran'])
  expect(results[3]).toContain('(https://evil.test/)')
  expect(results[3]).toContain('ask_after_untrusted under [security.policy]')
})

test('a call that was refused before it read anything leaves no untrusted text', async () => {
  const refusing = (readNothing: boolean): Tool => ({
    ...outside,
    async run(_input, { report }) {
      if (readNothing) report?.({ readNothing })
      throw new AppError('forbidden', "'127.0.0.1' is not a public address")
    },
  })
  const refusal = "'127.0.0.1' is not a public address"
  const { results, asked } = await callTools(['fetch', 'change'], { tools: [refusing(true), ...tools.slice(1)] })
  expect([results, asked]).toEqual([[refusal, 'ran'], []])
  const other = await callTools(['fetch', 'change'], { tools: [refusing(false), ...tools.slice(1)] })
  expect(untrustedSource(other.results[0] ?? '')).toBe('https://evil.test/')
  expect(other.asked).toEqual(['change'])
})

test('after untrusted text, an address is opened unasked only if a person or a search has shown it, whatever the setting says', async () => {
  const page: Tool = { ...outside, run: async () => 'see https://a.example/listed', showsAddresses: true }
  const open: Tool = { ...testTool('open', (key) => `opened ${key}`), egress: true, address: ({ key }: { key: string }) => key } as Tool
  const asked = async (address: string, options: TestAgentOptions = {}) => {
    const more = { text: 'read https://a.example/written' }
    return (await callTools(['fetch', ['open', address]], { tools: [page, open], ...options }, more)).asked
  }
  for (const ask_after_untrusted of [true, false]) {
    const policy = { level: 'full', auto_approve: ['*'], ask_after_untrusted } as const
    expect(await asked('https://a.example/written', { policy })).toEqual([])
    expect(await asked('https://a.example/listed', { policy })).toEqual([])
    expect(await asked('https://a.example/listed?secret', { policy })).toEqual(['open'])
    expect(await asked('https://b.example/', { policy })).toEqual(['open'])
    expect(
      await asked('https://a.example/listed', { policy, tools: [{ ...page, showsAddresses: undefined } as unknown as Tool, open] }),
    ).toEqual(['open'])
  }
  expect((await callTools([['open', 'https://b.example/']], { tools: [open] })).asked).toEqual([])
  const { results } = await callTools(['fetch', ['open', 'https://b.example/']], { tools: [page, open] })
  expect(results[1]).toMatch(/untrusted text.*Addresses that a person has written/)
})

test('without the setting, no question is asked', async () => {
  expect((await callTools(['fetch', 'change', 'reach', 'send'], { policy: { level: 'full' } })).asked).toEqual([])
})

test('without a person the call is refused', async () => {
  const { results } = await callTools(['fetch', 'reach'], { approve: async () => undefined })
  expect(results[1]).toContain('there is no person to ask here')
})

test('an approval lets only the approved call run', async () => {
  const { results } = await callTools(['fetch', 'reach'], { approve: async () => ({ by: 'device:a', standing: 'operator' as const }) })
  expect(results[1]).toBe('ran')
})

test('a call that stops something never asks', async () => {
  const stop: Tool = { ...testTool('stop', () => 'stopped', 'execute'), haltOf: () => ({ key: 'now' }) }
  const { asked, results } = await callTools(['fetch', 'stop'], { tools: [outside, stop] })
  expect([asked, results[1]]).toEqual([[], 'stopped'])
})

test.each([
  ['a framed message', frameUntrusted('message from x', 'hello')],
  ['a message with a file that models read', '[Image: a] attachments/0123456789abcdef.png'],
])('%s is untrusted text', async (_, text) => {
  expect((await callTools(['reach'], {}, { text })).asked).toEqual(['reach'])
})

test('later turns of the session ask too, and another session does not', async () => {
  const books = memoryBooks()
  await callTools(['fetch'], { books }, { session: 'a' })
  expect((await callTools(['reach'], { books }, { session: 'a' })).asked).toEqual(['reach'])
  expect((await callTools(['reach'], { books }, { session: 'b' })).asked).toEqual([])
})

test('a turn that a crash interrupts still asks after it is resumed', async () => {
  const books = memoryBooks()
  const options = { books, tools, policy: ASKS }
  await testAgent({ ...options, models: [scriptedModel([call('fetch'), hang])] }).agent.accept(request('go'))
  await until(() => books.writes.filter((write) => write.startsWith('checkpoint')).length > 0)
  const asked: string[] = []
  const approve = async ({ tool }: ToolApprovalRequest) => void asked.push(tool)
  await testAgent({ ...options, approve, models: [scriptedModel([call('reach'), { text: 'done' }])] }).resume()
  await until(() => books.ends.length === 1)
  expect(asked).toEqual(['reach'])
})

test('a fallback model is asked about in the same way', async () => {
  const first = scriptedModel([call('fetch'), httpError(400)])
  const second = scriptedModel([call('reach'), { text: 'done' }])
  expect((await callTools([], { models: [first, second] })).asked).toEqual(['reach'])
})

test('tools that a provider runs itself return untrusted text', () => {
  const result = { type: 'tool-result', toolCallId: '1', toolName: 'web_search', output: { type: 'json', value: [] } } as const
  const said = (part: object): ModelMessage => ({ role: 'assistant', content: [part as never] })
  const nothing = { upTo: 0, messages: [], summary: undefined }
  expect(sourcesIn(nothing, [said(result)])).toEqual(['web_search of the provider'])
  expect(sourcesIn(nothing, [said({ type: 'text', text: frameUntrusted('quoted', 'x') })])).toEqual([])
})

test.each([
  ['framed text', { type: 'text', value: frameUntrusted('https://evil.test/', 'x') }, 'https://evil.test/'],
  ['a framed error', { type: 'error-text', value: frameUntrusted('https://evil.test/', 'x') }, 'https://evil.test/'],
  ['JSON', { type: 'json', value: { text: 'x' } }, 'fetch'],
  ['an error as JSON', { type: 'error-json', value: ['x'] }, 'fetch'],
  ['a list of parts', { type: 'content', value: [{ type: 'text', text: 'x' }] }, 'fetch'],
  ['text without a frame', { type: 'text', value: 'x' }, undefined],
  ['a refusal without a value', { type: 'execution-denied' }, undefined],
])('the source of a tool result that is %s is found', (_, output, source) => {
  const result = { type: 'tool-result', toolCallId: '1', toolName: 'fetch', output }
  const message: ModelMessage = { role: 'tool', content: [result as never] }
  expect(sourcesIn({ messages: [], summary: undefined }, [message])).toEqual(source === undefined ? [] : [source])
  expect(sourcesIn({ messages: [message], summary: undefined }, [])).toEqual(source === undefined ? [] : [source])
})

test('an untrusted summary alone is enough to ask', () => {
  const summary = { upTo: 1, upToMs: 1, text: 'x', model: 'm', atMs: 1 }
  const about = (untrusted: boolean) => sourcesIn({ messages: [], summary: { ...summary, untrusted } }, [])
  expect([about(true), about(false)]).toEqual([['the summary of earlier messages'], []])
})

test('a summary of untrusted messages is framed, and is untrusted itself', async () => {
  const books = memoryBooks()
  await callTools(['fetch'], { books }, { session: 'a' })
  const small = { agent: { max_history_messages: 2 } }
  for (let turn = 0; turn < 6; turn++) await callTools([], { books, ...small }, { session: 'a' })
  const { asked, sources, model } = await callTools(['reach'], { books }, { session: 'a' })
  expect(books.summaries.get('a')?.untrusted).toBe(true)
  expect([asked, sources]).toEqual([['reach'], ['the summary of earlier messages']])
  expect(JSON.stringify(model.asked[0]?.prompt)).toContain('<untrusted source=\\"earlier messages\\"')
})

test('a frame keeps its begin and end when its result is shortened', () => {
  const framed = frameUntrusted(`https://evil.test/${'x'.repeat(500)}`, 'long '.repeat(20_000))
  const result = { type: 'tool-result', toolCallId: '1', toolName: 'fetch', output: { type: 'text', value: framed } } as const
  const current: ModelMessage[] = [
    { role: 'user', content: [{ type: 'text', text: 'go' }] },
    { role: 'assistant', content: [{ type: 'tool-call', toolCallId: '1', toolName: 'fetch', input: {} }] },
    { role: 'tool', content: [result] },
    ...Array.from({ length: 4 }, (): ModelMessage => ({ role: 'assistant', content: [{ type: 'text', text: 'so' }] })),
  ]
  const fitted = fitConversation({ upTo: 0, messages: [], summary: undefined }, current, {
    messagesMax: 100,
    tokensMax: 2000,
    mustFit: true,
  })
  const text = JSON.stringify(fitted)
  expect(text.length).toBeLessThan(5000)
  expect(text).toMatch(/<untrusted source=\\"https:[^"]*\\" id=\\"(\w{16})\\">[\s\S]*<\/untrusted id=\\"\1\\">/)
})

describe('in a room that people share', () => {
  const by = (sender: string, standing: Standing, text: string): ModelMessage =>
    withNote({ role: 'user', content: [{ type: 'text', text }] }, { writer: { client: `channel:x/bot/${sender}`, standing } })
  const messages = [by('eve', 'listed', 'see http://evil.example/'), by('ann', 'operator', 'hello')]
  const reader = (sender: string, standing: Standing) => ({ client: `channel:x/bot/${sender}`, standing })

  test.each([
    ['an operator', reader('ann', 'operator'), ['message from eve on x']],
    ['the writer itself', reader('eve', 'listed'), []],
    ['another person of the same standing', reader('bob', 'listed'), []],
    ['the same person with a higher standing since', reader('eve', 'operator'), []],
  ] as const)('the words of a listed sender are, for %s', (_, who, sources) => {
    expect(sourcesIn({ messages, summary: undefined }, [], who)).toEqual(sources)
  })

  test('a summary counts all words except those of operators as untrusted', () => {
    expect(messages.map((message) => sourcesInMessage(message).length > 0)).toEqual([true, false])
  })
})
