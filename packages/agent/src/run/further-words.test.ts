import type { ModelMessage } from '@sluice/sdk'
import { expect, test } from 'vitest'
import { scriptedModel } from '../testing/scripted-model.ts'
import { request, testAgent, testTool } from '../testing/test-agent.ts'
import type { FurtherWords } from '../turn/turn.ts'

/** Runs a turn that answers a message; `words` has the words that each step finds. */
async function runWith(words: (Pick<FurtherWords, 'text'> | undefined)[], isTaken = true) {
  const model = scriptedModel([{ calls: [{ name: 'look', input: {} }] }, { text: 'done' }])
  const { agent, books } = testAgent({ models: [model], tools: [testTool('look', () => 'seen')] })
  const taken: (readonly ModelMessage[])[] = []
  const renewed = new AbortController().signal
  const { sessions, turns } = books as never as { sessions: object; turns: { enqueue: unknown } }
  const delivery = {
    owned: { sessions, turns, lease: null } as never,
    turnId: 'turn-1',
    inbox: 1,
    attempts: 1,
    receivedAtMs: 0,
    checkpoint: [],
    reply: () => [],
    furtherWords: async (): Promise<FurtherWords | undefined> => {
      const next = words.shift()
      return (
        next && {
          ...next,
          atMs: 0,
          superseded: () => renewed,
          take: async (messages) => {
            taken.push(structuredClone([...messages]))
            return isTaken
          },
        }
      )
    },
  }
  const result = await agent.run(request('first', { session: 's', delivery }))
  return { result, taken, prompts: model.asked.map(({ prompt }) => prompt.slice(1)), books }
}

const textsOf = (messages: readonly { role: string; content: unknown }[] | undefined) =>
  messages?.map(({ role, content }) =>
    Array.isArray(content) ? `${role}: ${content.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('')}` : role,
  )

test('words before the first call of the model join the message', async () => {
  const { prompts, taken, books } = await runWith([{ text: 'second' }])
  expect(textsOf(prompts[0])).toEqual(['user: first\nsecond'])
  expect(textsOf(taken[0])).toEqual(['user: first\nsecond'])
  expect(books.ends).toMatchObject([{ status: 'done', input: 'first\nsecond' }])
})

test('words after a call are a message behind its results', async () => {
  const { prompts, taken, books } = await runWith([undefined, { text: 'rather the other' }])
  expect(textsOf(prompts[0])).toEqual(['user: first'])
  expect(textsOf(prompts[1])).toEqual(['user: first', 'assistant: ', 'tool: ', 'user: rather the other'])
  expect(taken[0]).toHaveLength(4)
  expect(textsOf(books.histories.get('s'))).toEqual(['user: first', 'assistant: ', 'tool: ', 'user: rather the other', 'assistant: done'])
})

test('words that changed meanwhile are not read', async () => {
  const { prompts } = await runWith([{ text: 'stale' }], false)
  expect(textsOf(prompts[0])).toEqual(['user: first'])
})
