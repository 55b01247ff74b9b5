import { chatSessionKey, frameUntrusted, type RecalledMemory, type Tool } from '@sluice/sdk'
import { expect, test } from 'vitest'
import { memoryBooks } from '../testing/memory-books.ts'
import { type Reply, scriptedModel } from '../testing/scripted-model.ts'
import { request, type TestAgentOptions, testAgent, testTool } from '../testing/test-agent.ts'

const memory: Tool = testTool('memory_recall', () => 'nothing')
const own = (text: string): RecalledMemory => ({ text, untrusted: false })

/** An agent whose memories are these for every message. */
function remembering(memories: readonly RecalledMemory[], replies: readonly Reply[], options: TestAgentOptions = {}) {
  const model = scriptedModel(replies)
  const asked: string[] = []
  const recall = async (reader: string, text: string) => {
    asked.push(`${reader}: ${text}`)
    return memories
  }
  const setup = testAgent({ models: [model], tools: [memory], placeOf: () => 'desk', agent: { timezone: 'UTC' }, recall, ...options })
  return { ...setup, model, asked }
}

const lastText = (prompt: readonly { readonly content: unknown }[] | undefined): string => {
  const content = prompt?.at(-1)?.content
  return Array.isArray(content) ? (content[0] as { text: string }).text : ''
}

test('puts the memories of the caller before the message once, and later requests repeat them byte for byte', async () => {
  const books = memoryBooks()
  const { agent, model, asked } = remembering([own('dog: is called Rex'), own('home: Lisbon')], [{ text: 'hi' }], { books })
  await agent.run(request('feed my dog', { session: 's' }))
  await agent.run(request('and my dog again', { session: 's' }))
  expect(asked).toEqual(['owner: feed my dog', 'owner: and my dog again'])
  const [first, second] = model.asked.map(({ prompt }) => prompt)
  expect(lastText(first)).toMatch(/^\[.*desk\]\n\[Memories that may matter here:\ndog: is called Rex\nhome: Lisbon\n\]\nfeed my dog$/)
  expect(second?.slice(0, first?.length)).toEqual(first)
  expect(lastText(second)).toMatch(/^\[[^\n]*\]\nand my dog again$/)
  // People read the text alone.
  expect(books.histories.get('s')?.[0]?.content).toEqual([{ type: 'text', text: 'feed my dog' }])
})

test.each([
  [true, 1],
  [false, 0],
])('a person is asked about a change after memories that are text of others (%s)', async (untrusted, questions) => {
  const asked: (string | undefined)[] = []
  const { agent, model } = remembering(
    [{ text: 'dog: is called Rex', untrusted }],
    [{ calls: [{ name: 'change', input: {} }] }, { text: 'ok' }],
    {
      tools: [memory, testTool('change', () => 'done', 'write')],
      policy: { level: 'full', ask_after_untrusted: true },
      approve: async (question) => {
        asked.push(question.untrusted)
        return false
      },
    },
  )
  await agent.run(request('feed my dog'))
  expect(asked).toEqual(Array.from({ length: questions }, () => 'memories'))
  expect(lastText(model.asked[0]?.prompt).includes(frameUntrusted('memories', 'dog: is called Rex'))).toBe(untrusted)
})

const room = chatSessionKey({ channel: 'roomchat', account: 'bot', sender: 'ann', conversation: 'room' })

test.each<[what: string, options: TestAgentOptions, more: object]>([
  ['the turn may not use memories', {}, { tools: [] }],
  ['the build has none', { tools: [] }, {}],
  ['the conversation belongs to another person', {}, { session: room, owner: 'channel:roomchat/bot/ben' }],
  ['the caller is not known', {}, { owner: undefined }],
  ['the built-in model answers', { labels: [{ provider: 'offline', model: 'echo' }] }, {}],
])('nothing is recalled when %s', async (_what, options, more) => {
  const { agent, model, asked } = remembering([own('dog: is called Rex')], [{ text: 'hi' }], options)
  await agent.run(request('feed my dog', more))
  expect(asked).toEqual([])
  expect(lastText(model.asked[0]?.prompt)).not.toContain('Rex')
})

test('the person of a chat gets her own memories', async () => {
  const { agent, asked } = remembering([own('dog: is called Rex')], [{ text: 'hi' }])
  await agent.run(request('feed my dog', { session: room, owner: 'channel:roomchat/bot/ann' }))
  expect(asked).toEqual(['channel:roomchat/bot/ann: feed my dog'])
})

test('a linked person has the memories of the person, in turns and in tools, also after a restart', async () => {
  const people: (string | undefined)[] = []
  const tool: Tool = { ...memory, run: async (_, { person }) => String(people.push(person)) }
  const linked: TestAgentOptions['linked'] = {
    refresh: async () => {},
    principal: (client) => ({ ...client, person: 'channel:x/bot/ann' }),
  }
  const books = memoryBooks()
  const call = { calls: [{ name: 'memory_recall', input: {} }] }
  const { agent, asked } = remembering([own('dog: is called Rex')], [call, { text: 'hi' }], { linked, books, tools: [tool] })
  const limited = { client: 'channel:roomchat/bot/ann', standing: 'listed' } as const
  await agent.run(request('feed my dog', { session: room, owner: 'channel:roomchat/bot/ann', limited }))
  expect([asked, people]).toEqual([['channel:x/bot/ann: feed my dog'], ['channel:x/bot/ann']])
  const waiting = { id: 'r', agent: 'main', sessionId: null, source: 'api', owner: 'o', input: 'go on', createdAtMs: 1 }
  await books.turns.enqueue({ ...waiting, context: { caller: 'device:d', limited: { client: 'device:d', standing: 'client' } } })
  const later = remembering([], [{ text: 'hi' }], { linked, books })
  await later.resume()
  await later.agent.ended('r')
  expect(later.asked).toEqual(['channel:x/bot/ann: go on'])
})

test('an account that another node has separated has its own memories from the next turn on', async () => {
  let isLinked = true
  const linked: TestAgentOptions['linked'] = {
    refresh: async () => {
      isLinked = false
    },
    principal: (client) => (isLinked ? { ...client, person: 'channel:x/bot/ann' } : client),
  }
  const { agent, asked } = remembering([], [{ text: 'hi' }, { text: 'hi' }], { linked })
  const limited = { client: 'device:d', standing: 'client' } as const
  await agent.run(request('feed my dog', { owner: 'd', caller: 'device:d', limited }))
  isLinked = true
  await agent.ended(await agent.accept(request('feed my cat', { owner: 'd', caller: 'device:d', limited })))
  expect(asked).toEqual(['device:d: feed my dog', 'device:d: feed my cat'])
})

test('a conversation of one person in a room, where others read the answers, recalls nothing of the person', async () => {
  const { agent, asked, model } = remembering([own('dog: is called Rex')], [{ text: 'hi' }])
  await agent.run(request('feed my dog', { session: room, owner: 'channel:roomchat/bot/ann', isInRoom: true }))
  expect(asked).toEqual([])
  expect(lastText(model.asked[0]?.prompt)).not.toContain('Rex')
})

test('people who share the conversation of a room get the memories of the room', async () => {
  const { agent, asked } = remembering([own('dog: is called Rex')], [{ text: 'hi' }])
  const session = chatSessionKey({ channel: 'roomchat', account: 'bot', conversation: 'room' })
  await agent.run(request('feed the dog', { session, owner: 'channel:roomchat/bot/ann', isInRoom: true }))
  expect(asked).toEqual(['room:roomchat/bot/room: feed the dog'])
})

test('a turn whose memories cannot be read goes on without them', async () => {
  const { agent, model, logs } = remembering([], [{ text: 'hi' }], { recall: () => Promise.reject(new Error('the disk is gone')) })
  expect((await agent.run(request('feed my dog'))).text).toBe('hi')
  expect(lastText(model.asked[0]?.prompt)).toMatch(/^\[[^\n]*\]\nfeed my dog$/)
  expect(logs.map(({ message }) => message)).toContain('memories could not be recalled')
})
