/** The tests of a model: what each one asks, and when its reply passes. The tool that they offer exists only here and does nothing. */
import { randomInt } from 'node:crypto'
import type { ModelMessage, ModelTool } from '@sluice/sdk'
import type { ModelReply, ToolCall } from '../model/model-reply.ts'
import type { MODEL_TESTS } from './test-names.ts'
import { COLOURS, type Colour, twoColourImage } from './two-colour-image.ts'

/** Sends one request. Rejects with the reason of the failure. */
export type AskOnce = (request: {
  readonly prompt: ModelMessage[]
  readonly tools?: readonly ModelTool[]
  /** Called for each piece of text of a streamed reply. Absent: the whole reply is requested at once. */
  readonly onPiece?: () => void
}) => Promise<ModelReply>

/** The model answers, but does not do what the test asks. */
export class NotSupported extends Error {}

/** Runs a test. Resolves to its detail; rejects with `NotSupported`, or with the reason of the failure. */
export type ModelTest = (ask: AskOnce) => Promise<string>

const TOOL: ModelTool = {
  type: 'function',
  name: 'get_stock',
  description: 'Returns the number of pieces of one item in stock.',
  inputSchema: {
    type: 'object',
    properties: { item: { type: 'string', description: 'The item, in lower case' } },
    required: ['item'],
    additionalProperties: false,
  },
}

const user = (text: string): ModelMessage => ({ role: 'user', content: [{ type: 'text', text }] })

/** Returns the tests of one run: the test of a tool's result continues the conversation of the test of a tool call. */
export function modelTests(): Readonly<Record<(typeof MODEL_TESTS)[number], ModelTest>> {
  let called: { readonly prompt: ModelMessage[]; readonly reply: ModelReply } | undefined
  const callOnce = async (ask: AskOnce): Promise<string> => {
    const prompt = [user('How many pieces of paper are in stock? Find out with the tool get_stock.')]
    const reply = await ask({ prompt, tools: [TOOL] })
    if (reply.calls.length === 0) throw new NotSupported(`it did not call the tool; it answered: ${quoted(reply)}`)
    for (const call of reply.calls) requireItem(call, 'paper')
    called = { prompt, reply }
    return 'it called the tool with valid arguments'
  }
  return {
    async text(ask) {
      return `it answered: ${quoted(await ask({ prompt: [user('Say hello in one short sentence.')] }))}`
    },
    async streaming(ask) {
      let count = 0
      const prompt = [user('Count from 1 to 20, with a space between the numbers and nothing else.')]
      await ask({ prompt, onPiece: () => count++ })
      if (count < 2) throw new NotSupported('the reply came in one piece')
      return `the reply came in ${count} pieces`
    },
    tool_call: callOnce,
    async tool_result(ask) {
      if (!called) await callOnce(ask)
      if (!called) throw new Error('no tool was called')
      const pieces = randomInt(100, 1000)
      const { prompt, reply } = called
      const results = reply.calls.map(({ id, name }) => ({
        type: 'tool-result' as const,
        toolCallId: id,
        toolName: name,
        output: { type: 'text' as const, value: JSON.stringify({ item: 'paper', pieces }) },
      }))
      const answer = await ask({
        prompt: [...prompt, { role: 'assistant', content: reply.content }, { role: 'tool', content: results }],
        tools: [TOOL],
      })
      if (!answer.text.includes(String(pieces))) throw new Error(`it did not use the result ${pieces}; it answered: ${quoted(answer)}`)
      return 'it used the result of the tool'
    },
    async parallel_tool_calls(ask) {
      const prompt = [
        user('How many pieces of paper and how many pieces of ink are in stock? Call get_stock once for each, both in the same reply.'),
      ]
      const { calls } = await ask({ prompt, tools: [TOOL] })
      if (calls.length === 0) throw new NotSupported('it did not call the tool')
      if (calls.length === 1) throw new NotSupported('it makes one call in a reply: its calls run one after another')
      for (const item of ['paper', 'ink']) requireItem(calls.find(({ input }) => input.includes(item)) ?? calls[0], item)
      return `it made ${calls.length} calls in one reply`
    },
    async image(ask) {
      const [left, right] = twoColours()
      const text = `The left half and the right half of this image each have one colour. Name the left one and then the right one, out of ${Object.keys(COLOURS).join(', ')}.`
      const file = { type: 'file' as const, mediaType: 'image/png', data: { type: 'data' as const, data: twoColourImage(left, right) } }
      const reply = await ask({ prompt: [{ role: 'user', content: [{ type: 'text', text }, file] }] })
      const named = reply.text.toLowerCase().match(/red|green|blue|yellow/g) ?? []
      if (named[0] !== left || named.find((colour) => colour !== left) !== right)
        throw new NotSupported(`it does not see that the image is ${left} and ${right}; it answered: ${quoted(reply)}`)
      return `it sees that the image is ${left} and ${right}`
    },
  }
}

export function twoColours(): [Colour, Colour] {
  const colours = Object.keys(COLOURS) as [Colour, ...Colour[]]
  const [left = colours[0]] = colours.splice(randomInt(colours.length), 1)
  return [left, colours[randomInt(colours.length)] ?? colours[0]]
}

function requireItem(call: ToolCall | undefined, wanted: string): void {
  const { item } = (parsed(call?.input ?? '') ?? {}) as { item?: unknown }
  const isValid = call?.name === TOOL.name && typeof item === 'string' && item.toLowerCase().includes(wanted)
  if (!isValid) throw new Error(`its call is not valid: ${call?.name} ${call?.input}`)
}

function parsed(json: string): unknown {
  try {
    return JSON.parse(json)
  } catch {
    return undefined
  }
}

const QUOTED_CHARS_MAX = 120

const quoted = ({ text }: ModelReply): string => quotedText(text)

export const quotedText = (text: string): string => {
  const line = text.replaceAll(/\s+/g, ' ').trim()
  return JSON.stringify(line.length > QUOTED_CHARS_MAX ? `${line.slice(0, QUOTED_CHARS_MAX)}…` : line)
}
