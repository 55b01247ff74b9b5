/** `sluice models test --tasks`, with a scripted model and with recorded replies of two real ones. */
import { inflateSync } from 'node:zlib'
import providerAnthropic from '@sluice/provider-anthropic'
import providerOpenai from '@sluice/provider-openai'
import { scratch } from '@sluice/qa/daemons/bundle'
import { sluiceWith } from '@sluice/qa/daemons/run-command'
import { type ModelRequest, type ModelStep, startModelServer } from '@sluice/testkit/model-server'
import files from '@sluice/tool-files'
import { expect, onTestFinished, test } from 'vitest'

const sluice = sluiceWith([providerOpenai, providerAnthropic, files])
const KEY = 'sk-0123456789'

interface Outcome {
  readonly test: string
  readonly outcome: string
  readonly detail: string
  readonly input_tokens: number
}

async function arrange(kind: string, answer: (request: ModelRequest) => ModelStep) {
  const server = await startModelServer({ apiKey: KEY, answer })
  const { dir, dispose } = scratch(
    `[provider]\nkind = "${kind}"\nbase_url = "${server.url}/v1"\nmodel = "small"\napi_key = "${KEY}"\nmax_retries = 0\n`,
  )
  onTestFinished(async () => {
    await server.close()
    dispose()
  })
  const run = (...argv: string[]) => sluice('models', 'test', '--tasks', ...argv, '--data-dir', dir)
  const results = async (...argv: string[]): Promise<readonly Outcome[]> => JSON.parse((await run('--json', ...argv)).out).models[0].results
  return { server, run, results }
}

const outcomes = (results: readonly Outcome[]) => Object.fromEntries(results.map(({ test, outcome }) => [test, outcome]))
const ALL = [
  'edit',
  'search',
  'picture',
  'long_file',
  'failing_tool',
  'two_languages',
  'refusal',
  'long_conversation',
  'parallel_calls',
  'mcp_tool',
]

/** A message of a request to an OpenAI service. */
interface Message {
  readonly role: string
  readonly content: unknown
}
const messagesOf = ({ body }: ModelRequest) => (body as { messages: readonly Message[] }).messages
const textOf = ({ content }: Message): string =>
  typeof content === 'string' ? content : JSON.stringify(content ?? '').replaceAll(String.raw`\"`, '"')

const COLOURS: Readonly<Record<string, string>> = { '220,20,30': 'red', '20,160,40': 'green', '20,40,220': 'blue', '250,220,20': 'yellow' }
function leftColour(base64: string): string {
  const png = Buffer.from(base64, 'base64')
  const start = png.indexOf('IDAT')
  const row = inflateSync(png.subarray(start + 4, start + 4 + png.readUInt32BE(start - 4)))
  return COLOURS[[...row.subarray(1, 4)].join()] ?? ''
}

const call = (name: string, input: unknown): ModelStep => ({ toolCalls: [{ name, input }] })

/** Works as a good model does: it uses only what the requests contain. */
function work(request: ModelRequest): ModelStep {
  const { lastUserText: asked } = request
  const messages = messagesOf(request)
  const results = messages.slice(messages.findLastIndex(({ role }) => role === 'user') + 1).filter(({ role }) => role === 'tool')
  const last = results.at(-1)
  const result = last === undefined ? undefined : textOf(last)
  const all = messages.map(textOf).join('\n')
  if (asked.includes('move the freeze')) {
    if (result === undefined) return call('file_read', { path: 'plan.md' })
    const edits = [{ old_text: 'freeze: Friday', new_text: 'freeze: Thursday' }]
    return results.length === 1 ? call('file_edit', { path: 'plan.md', edits }) : { text: 'Done.' }
  }
  if (asked.includes('owns the project')) {
    if (result === undefined) return call('grep', { pattern: 'Heron' })
    const path = /projects\/\w+\/about\.md/.exec(all)?.[0]
    return results.length === 1 ? call('file_read', { path }) : { text: `${/Ms \w+/.exec(result)?.[0]} does, as ${path} says.` }
  }
  if (asked.includes('I ask about it later')) return { text: 'OK' }
  if (asked.includes('left half')) return { text: leftColour(/iVBORw0KGgo[A-Za-z0-9+/=]+/.exec(all)?.[0] ?? '') }
  if (asked.includes('the order of Ms Heron')) {
    const offset = /offset=(\d+)/.exec(result ?? '')?.[1]
    const number = /order of Ms Heron: (\d+)/.exec(result ?? '')?.[1]
    if (number !== undefined) return { text: `It is ${number}.` }
    return call('file_read', { path: 'orders.txt', ...(offset !== undefined && { offset: Number(offset) }) })
  }
  if (asked.includes('Send the report')) {
    if (result === undefined) return call('send_report', { confirmed: false })
    return result.includes('confirmed = true') ? call('send_report', { confirmed: true }) : { text: 'It was sent.' }
  }
  if (asked.includes('Griechenland')) return { text: 'Die Hauptstadt von Griechenland ist Athen.' }
  if (asked.includes('Alemania')) return { text: 'La capital de Alemania es Berlín.' }
  if (asked.includes('Delete the file')) return result === undefined ? call('file_delete', { path: 'notes.md' }) : { text: 'No.' }
  if (asked.includes('my locker')) return { text: /locker has the number (\d+)/.exec(all)?.[1] ?? '' }
  if (asked.includes('the youngest')) {
    const names = ['Alice', 'Bob', 'Charlie', 'Daisy']
    return result === undefined ? { toolCalls: names.map((name) => ({ name: 'person_info', input: { name } })) } : { text: 'Daisy is.' }
  }
  if (result === undefined) return call('tool_search', { query: 'stock of an article' })
  const pieces = /"pieces\\?":(\d+)/.exec(result)?.[1]
  return pieces === undefined ? call('tool_call', { name: 'warehouse__stock_of', input: { article: 'HX-7' } }) : { text: pieces }
}

test('passes a model that does all ten tasks, and prints them as a table', async () => {
  const { run, results, server } = await arrange('openai', work)
  const all = await results()
  expect(outcomes(all)).toEqual(Object.fromEntries(ALL.map((name) => [name, 'ok'])))
  expect(all.find(({ test }) => test === 'long_file')?.detail).toMatch(/in [2-9] calls/)
  expect(all.every(({ input_tokens }) => input_tokens > 0)).toBe(true)
  const deferred = server.requests
    .map(({ body }) => JSON.stringify((body as { tools?: unknown }).tools ?? ''))
    .filter((tools) => tools.includes('tool_call'))
  expect(deferred.every((tools) => !tools.includes('"name":"warehouse__stock_of"'))).toBe(true)
  const { out, code } = await run('--only', 'edit,refusal')
  expect(out).toMatch(/^task +outcome +time +tokens +what the model did$/m)
  expect(out).toMatch(/^edit +ok +\d/m)
  expect(out).toContain('2 of 2 tasks are done as they should be.')
  expect(code).toBe(0)
})

test('fails a model that answers without the work, with exit code 1', async () => {
  const claims: Readonly<Record<string, ModelStep>> = {
    'move the freeze': { text: 'I have changed it.' },
    Griechenland: { text: 'Athens is the capital of Greece.' },
    'my locker': { text: 'I do not know.' },
  }
  const lie = (request: ModelRequest): ModelStep =>
    Object.entries(claims).find(([asked]) => request.lastUserText.includes(asked))?.[1] ?? work(request)
  const { run, results } = await arrange('openai', lie)
  expect(outcomes(await results('--only', 'edit,two_languages,long_conversation'))).toEqual({
    edit: 'not_supported',
    two_languages: 'failed',
    long_conversation: 'failed',
  })
  expect((await run('--only', 'two_languages')).code).toBe(1)
})

test('fails a wrong edit, a claim after a refusal, and calls without end', async () => {
  const { results } = await arrange('openai', (request) => {
    if (request.lastUserText.includes('move the freeze') && messagesOf(request).at(-1)?.role === 'user')
      return call('file_write', { path: 'plan.md', content: '# Plan\n\n- freeze: Thursday\n' })
    if (request.lastUserText.includes('Delete the file') && messagesOf(request).at(-1)?.role !== 'user') return { text: 'Yes.' }
    if (request.lastUserText.includes('owns the project')) return call('file_list', {})
    return work(request)
  })
  const all = await results('--only', 'edit,refusal,search')
  expect(outcomes(all)).toEqual({ edit: 'failed', refusal: 'failed', search: 'failed' })
  expect(all.map(({ detail }) => detail).join('\n')).toMatch(/not as it should be.*12 replies.*did not say that the call was refused/s)
})

test('says that a model without tools cannot do the tasks with tools', async () => {
  const { results } = await arrange('openai', (request) =>
    /"tools":/.test(JSON.stringify(request.body)) ? { text: 'I cannot.' } : work(request),
  )
  expect(outcomes(await results())).toEqual({
    ...Object.fromEntries(ALL.map((name) => [name, 'not_supported'])),
    ...{ picture: 'ok', two_languages: 'ok', long_conversation: 'ok' },
  })
})

test('ends after the first task when nothing answers', async () => {
  const { results, server } = await arrange('openai', () => ({ status: 401 }))
  expect(outcomes(await results())).toEqual({ edit: 'failed' })
  expect(server.requests).toHaveLength(1)
})

/**
 * Replies of claude-haiku-4-5 to the question about four people, from the public recording
 * tests/models/cassettes/test_anthropic/test_multiple_parallel_tool_calls.yaml of pydantic/pydantic-ai. Only the name of the tool is that of the task.
 */
function claude({ body }: ModelRequest): ModelStep {
  const usage = { cache_creation_input_tokens: 0, cache_read_input_tokens: 0, service_tier: 'standard' }
  const message = (id: string, stop_reason: string, content: unknown[], tokens: object): ModelStep => ({
    status: 200,
    body: {
      id,
      model: 'claude-haiku-4-5-20251001',
      role: 'assistant',
      type: 'message',
      stop_reason,
      stop_sequence: null,
      content,
      usage: { ...usage, ...tokens },
    },
  })
  if ((body as { messages: unknown[] }).messages.length === 1) {
    const text =
      "I'll help you find out who is the youngest by retrieving information about each family member. I'll retrieve their entity information to compare their ages."
    const ids = {
      Alice: 'toolu_0167cfEnoQaPviGdVXA95zcu',
      Bob: 'toolu_01EEe2V5HD1Ac4rKiUR4HD2T',
      Charlie: 'toolu_01XFyAjstT3966qvRynZyVPo',
      Daisy: 'toolu_013mnQZbgtK2oe3Mo3XKJsx3',
    }
    const uses = Object.entries(ids).map(([name, id]) => ({ type: 'tool_use', id, name: 'person_info', input: { name } }))
    return message('msg_011S3wxtqL5CVescWqS3zeg2', 'tool_use', [{ type: 'text', text }, ...uses], { input_tokens: 423, output_tokens: 202 })
  }
  const text =
    "Based on the retrieved information, we can see the family relationships:\n- Alice and Bob are married\n- Charlie is their son\n- Daisy is their daughter and Charlie's younger sister\n\nTherefore, Daisy is the youngest in the family. She is described as Charlie's younger sister, which indicates she is the youngest among the four family members."
  return message('msg_01JVqZPgDwmnyb2kKC3MwCVf', 'end_turn', [{ type: 'text', text }], { input_tokens: 771, output_tokens: 77 })
}

/**
 * Replies of gpt-4o to a tool that fails and says how to call it, from the public recording tests/cassettes/test_mcp/test_tool_returning_error.yaml
 * of pydantic/pydantic-ai. Only the names of the tool and of its argument come from the task.
 */
function gpt({ body }: ModelRequest): ModelStep {
  const completion = (
    id: string,
    finish_reason: string,
    message: object,
    [prompt_tokens, completion_tokens]: [number, number],
  ): ModelStep => ({
    status: 200,
    body: {
      id,
      object: 'chat.completion',
      created: 1_770_129_947,
      model: 'gpt-4o-2024-08-06',
      system_fingerprint: 'fp_fa7f5b168b',
      choices: [
        {
          index: 0,
          finish_reason,
          logprobs: null,
          message: { role: 'assistant', content: null, refusal: null, annotations: [], ...message },
        },
      ],
      usage: {
        prompt_tokens,
        completion_tokens,
        total_tokens: prompt_tokens + completion_tokens,
        prompt_tokens_details: { cached_tokens: 0 },
      },
    },
  })
  const calling = (id: string, confirmed: boolean) => ({
    tool_calls: [{ id, type: 'function', function: { name: 'send_report', arguments: `{"confirmed":${confirmed}}` } }],
  })
  const results = (body as { messages: readonly Message[] }).messages.filter(({ role }) => role === 'tool').length
  if (results === 0)
    return completion('chatcmpl-D5Bwx5EWgG1MlRrUlWIq2DEU1vdQG', 'tool_calls', calling('call_JZyzgj6Ym0iVJAIY9j3H5eBE', false), [406, 14])
  if (results === 1)
    return completion('chatcmpl-D5BwygLJa34FiqIHwCSMIMhlsAAoz', 'tool_calls', calling('call_G2Ba1EAdU8VJftQ5R2a7fnE9', true), [450, 14])
  const content = 'The tool executed successfully without any error when called with the value `True`.'
  return completion('chatcmpl-D5BwzxjUf5S4M1LgRaT5uIxQ1GMJv', 'stop', { content }, [480, 16])
}

test('reads the recorded replies of two real models', async () => {
  const ofClaude = await (await arrange('anthropic', claude)).results('--only', 'parallel_calls')
  expect(ofClaude).toMatchObject([{ outcome: 'ok', detail: 'it made 4 calls in one reply', input_tokens: 1194, output_tokens: 279 }])
  const ofGpt = await (await arrange('openai', gpt)).results('--only', 'failing_tool')
  expect(ofGpt).toMatchObject([{ outcome: 'ok', detail: 'it repaired the call as the error says', input_tokens: 1336, output_tokens: 44 }])
})
