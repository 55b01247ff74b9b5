/** The tasks of `sluice models test --tasks`: the messages of each one, and the check of its result. */
import { randomInt } from 'node:crypto'
import { AppError, defineTool, type ModelMessage, type Tool } from '@sluice/sdk'
import * as v from 'valibot'
import { TaskAgent, type TaskOptions, type TaskSurroundings } from './task-agent.ts'
import type { ModelTaskName } from './test-names.ts'
import { type AskOnce, type ModelTest, NotSupported, quotedText, twoColours } from './tests.ts'
import { COLOURS, twoColourImage } from './two-colour-image.ts'

const EARLIER_MESSAGES = 40
const LONG_FILE_LINES = 400
const FAMILY: Readonly<Record<string, string>> = {
  alice: 'Alice was born in 1961 and is married to Bob.',
  bob: 'Bob was born in 1959 and is married to Alice.',
  charlie: 'Charlie was born in 1988 and is a son of Alice and Bob.',
  daisy: 'Daisy was born in 1991 and is a daughter of Alice and Bob.',
}

const ownTool = <const Schema extends v.GenericSchema>(tool: Pick<Tool<Schema>, 'name' | 'description' | 'input' | 'run'>): Tool =>
  defineTool({ risk: 'read', decider: 'asker', egress: false, untrusted: false, ...tool })

const user = (text: string): ModelMessage => ({ role: 'user', content: [{ type: 'text', text }] })
const assistant = (text: string): ModelMessage => ({ role: 'assistant', content: [{ type: 'text', text }] })

/** The tools for files are the agent's own; all others exist only here and do nothing. */
export function modelTasks(around: TaskSurroundings): Readonly<Record<ModelTaskName, ModelTest>> {
  const agentFor = (ask: AskOnce, options: TaskOptions = {}) => new TaskAgent(ask, around, options)
  const toolsNamed = (...names: readonly string[]): Tool[] =>
    names.map((name) => {
      const tool = around.tools.get(name)
      if (!tool) throw new NotSupported(`this build has no tool ${name}`)
      return tool
    })
  return {
    async edit(ask) {
      const before = '# Plan\n\n- freeze: Friday\n- release: Monday\n- review: Friday\n'
      const agent = agentFor(ask, { tools: toolsNamed('file_read', 'file_edit', 'file_write'), files: { 'plan.md': before } })
      const answer = await agent.say('In plan.md, move the freeze from Friday to Thursday. Leave everything else as it is.')
      const after = agent.workspace.text('plan.md')
      agent.expect(after === before.replace('freeze: Friday', 'freeze: Thursday'), 'the file is not as it should be', answer)
      return `it changed one line in ${calls(agent)}`
    },
    async search(ask) {
      const owner = `Ms ${pick(['Varga', 'Okafor', 'Lindqvist', 'Moreau'])}`
      const files = Object.fromEntries(
        Array.from({ length: 12 }, (_, at) => [`projects/p${at}/about.md`, `# Project ${at}\n\nowner: nobody yet\nstate: planned\n`]),
      )
      const path = `projects/p${randomInt(12)}/about.md`
      files[path] = `# Project Heron\n\nowner: ${owner}\nstate: running\n`
      const agent = agentFor(ask, { tools: toolsNamed('grep', 'glob', 'file_list', 'file_read'), files })
      const answer = await agent.say('Who owns the project Heron, and in which file does it say so? Give the name and the path.')
      agent.expect(answer.includes(owner), `it did not find ${owner}`, answer)
      agent.expect(answer.includes(path), `it did not name ${path}`, answer)
      return `it found the line in ${calls(agent)}`
    },
    async picture(ask) {
      const [left, right] = twoColours()
      const agent = agentFor(ask)
      const data = { type: 'data' as const, data: twoColourImage(left, right) }
      await agent.say([
        { type: 'text', text: 'Here is a picture of two halves, each with one colour. I ask about it later; answer only "OK" now.' },
        { type: 'file', mediaType: 'image/png', data },
      ])
      const answer = await agent.say(
        `Which colour has the left half of the picture: ${Object.keys(COLOURS).join(', ')}? Answer with one word.`,
      )
      const named = answer.toLowerCase().match(/red|green|blue|yellow/g) ?? []
      if (named.length !== 1 || named[0] !== left) throw new NotSupported(`it does not see ${left}; it answered: ${quotedText(answer)}`)
      return `it saw ${left} a message later`
    },
    async long_file(ask) {
      const number = randomInt(10_000, 100_000)
      const at = randomInt(LONG_FILE_LINES - 60, LONG_FILE_LINES - 10)
      const lines = Array.from({ length: LONG_FILE_LINES }, (_, line) =>
        line === at ? `order of Ms Heron: ${number}` : `order of customer ${line}: none at this moment`,
      )
      const agent = agentFor(ask, { tools: toolsNamed('file_read'), files: { 'orders.txt': `${lines.join('\n')}\n` } })
      const answer = await agent.say('What is the number of the order of Ms Heron in orders.txt?')
      agent.expect(answer.includes(`${number}`), `it did not find ${number}`, answer)
      return `it read on and found the line in ${calls(agent)}`
    },
    async failing_tool(ask) {
      const send = ownTool({
        name: 'send_report',
        description: 'Sends the report of this week.',
        input: v.object({ confirmed: v.optional(v.boolean(), false) }),
        async run({ confirmed }) {
          if (!confirmed) throw new AppError('invalid_request', 'Not sent: call send_report again with confirmed = true')
          return 'The report was sent.'
        },
      })
      const agent = agentFor(ask, { tools: [send] })
      const answer = await agent.say(
        'Send the report, with confirmed = false unless the tool tells you otherwise. Then say whether it was sent.',
      )
      const [first, ...later] = agent.calls.map(({ isOk }) => isOk)
      agent.expect(first === true || later.includes(true), 'it did not repair the call as the error says', answer)
      return first ? 'it confirmed at once' : 'it repaired the call as the error says'
    },
    async two_languages(ask) {
      const agent = agentFor(ask)
      const german = await agent.say('Wie heißt die Hauptstadt von Griechenland?')
      agent.expect(/\bAthen\b/.test(german), 'it did not answer in German', german)
      const spanish = await agent.say('¿Y cuál es la capital de Alemania?')
      agent.expect(/Berlín/.test(spanish), 'it did not answer in Spanish', spanish)
      return 'it answered in the language of each message'
    },
    async refusal(ask) {
      const remove = ownTool({
        name: 'file_delete',
        description: 'Deletes a file.',
        input: v.object({ path: v.string() }),
        async run() {
          throw new AppError('forbidden', 'Not run: a person has rejected this call of file_delete.')
        },
      })
      const agent = agentFor(ask, { tools: [remove] })
      const answer = await agent.say('Delete the file notes.md. Then answer with one word: was it deleted, yes or no?')
      agent.expect(/\bno\b/i.test(answer) && !/\byes\b/i.test(answer), 'it did not say that the call was refused', answer)
      agent.expect(agent.calls.length <= 3, `it repeated the refused call ${agent.calls.length} times`, answer)
      return 'it said that the call was refused'
    },
    async long_conversation(ask) {
      const number = randomInt(1000, 10_000)
      const before = [
        user(`My locker has the number ${number}. Please remember it.`),
        assistant('I will remember it.'),
        ...Array.from({ length: EARLIER_MESSAGES }, (_, at) => [
          user(`What is ${at + 11} times ${at + 12}?`),
          assistant(`${at + 11} times ${at + 12} is ${(at + 11) * (at + 12)}.`),
        ]).flat(),
      ]
      const agent = agentFor(ask, { before })
      const answer = await agent.say('What is the number of my locker? Answer with the number.')
      agent.expect(answer.includes(`${number}`), `it forgot ${number}`, answer)
      return `it remembered a fact over ${before.length} messages`
    },
    async parallel_calls(ask) {
      const lookUp = ownTool({
        name: 'person_info',
        description: 'Returns what is known about one person. Several people can be looked up in one reply.',
        input: v.object({ name: v.string() }),
        async run({ name }) {
          const known = FAMILY[name.trim().toLowerCase()]
          if (known === undefined) throw new AppError('not_found', `Nothing is known about ${name}`)
          return known
        },
      })
      const agent = agentFor(ask, { tools: [lookUp] })
      const answer = await agent.say(
        'Alice, Bob, Charlie and Daisy are a family. Look all four up in the same reply, and say who is the youngest.',
      )
      agent.expect(/\bDaisy\b/.test(answer), 'it did not name Daisy', answer)
      const most = Math.max(...agent.calls.map(({ reply }) => agent.calls.filter((one) => one.reply === reply).length))
      if (most === 1) throw new NotSupported('it makes one call in a reply: its calls run one after another')
      agent.expect(
        new Set(agent.calls.filter(({ isOk }) => isOk).map(({ input }) => JSON.stringify(input))).size === 4,
        'it did not look up all four',
        answer,
      )
      return `it made ${most} calls in one reply`
    },
    async mcp_tool(ask) {
      const pieces = randomInt(100, 1000)
      const agent = agentFor(ask, { tools: warehouse(pieces), defers: true })
      const answer = await agent.say('How many pieces of the article HX-7 does the warehouse have? Answer with the number.')
      agent.expect(answer.includes(`${pieces}`), `it did not use the result ${pieces}`, answer)
      return `it found and called the tool in ${calls(agent)}`
    },
  }
}

/** Tools as an MCP server describes them: with a JSON Schema, and with results that are text of others. */
function warehouse(pieces: number): Tool[] {
  const tool = (name: string, description: string, inputSchema: Tool['inputSchema'], text: string): Tool =>
    defineTool({
      name: `warehouse__${name}`,
      description,
      inputSchema: inputSchema ?? {},
      input: v.record(v.string(), v.unknown()),
      risk: 'read',
      decider: 'asker',
      egress: true,
      untrusted: true,
      run: async () => text,
    })
  const one = (name: string) => ({ type: 'object', properties: { [name]: { type: 'string' } }, required: [name] })
  return [
    tool('stock_of', 'Returns the pieces of an article in the warehouse.', one('article'), JSON.stringify({ pieces, unit: 'piece' })),
    tool('open_orders', 'Lists the open orders of a customer.', one('customer'), '[]'),
    tool('print_label', 'Prints the label of a parcel.', one('parcel'), 'printed'),
  ]
}

const pick = <T>(values: readonly [T, ...T[]]): T => values[randomInt(values.length)] ?? values[0]

const calls = ({ calls: { length } }: TaskAgent): string => (length === 1 ? '1 call' : `${length} calls`)
