/** Replies, refusals and errors of model services in a built daemon: their effect on callers, operators and the next request. */
import { type ModelServer, type ModelStep, startModelServer } from '@sluice/testkit/model-server'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { post, type RunningDaemon, run, scratch, startDaemon, token } from '../daemons/bundle.ts'

let model: ModelServer
let folder: ReturnType<typeof scratch>
let daemon: RunningDaemon
let bearer: string

beforeAll(async () => {
  model = await startModelServer({ apiKey: null, models: ['test'] })
  folder = scratch(`
[provider]
kind = "groq"
base_url = "${model.url}/groq/v1"
model = "test"
max_output_tokens = 50
reasoning_effort = "low"
[provider.options]
user = "operator"
`)
  daemon = await startDaemon('full', folder.dir)
  bearer = await token('full', folder.dir)
}, 60_000)

afterAll(async () => {
  daemon.kill('SIGTERM')
  await daemon.exited
  await model.close()
  folder.dispose()
})

/** Runs one turn with these steps of the model. Returns its answer, its end and its requests. */
async function turn(message: string, ...steps: ModelStep[]) {
  const before = model.requests.length
  model.script(...steps)
  const answer = await post(`${daemon.url}/webhook`, { message }, { authorization: `Bearer ${bearer}` })
  const stored = await fetch(`${daemon.url}/api/turns/${answer.body.turn_id}`, { headers: { authorization: `Bearer ${bearer}` } })
  return { ...answer, end: (await stored.json()) as Record<string, unknown>, requests: model.requests.slice(before) }
}

/** An answer with this message. */
const answers = (message: object, finish_reason = 'stop'): ModelStep => ({
  status: 200,
  body: { choices: [{ index: 0, message: { role: 'assistant', ...message }, finish_reason }] },
})

test('the settings of the endpoint are in the request', async () => {
  const { status, requests } = await turn('hello')
  expect(status).toBe(200)
  expect(requests).toMatchObject([
    { refused: null, body: { max_completion_tokens: 50, reasoning_effort: 'low', user: 'operator', model: 'test' } },
  ])
})

test('reasoning goes back to Groq under its own name, and the turn goes on after the tool call', async () => {
  const call = { id: 'c1', type: 'function', function: { name: 'file_list', arguments: '{"path":"."}' } }
  const { body, requests } = await turn('look', answers({ reasoning: 'I have to look.', tool_calls: [call] }, 'tool_calls'), {
    text: 'Nothing.',
  })
  expect(body.response).toBe('Nothing.')
  expect(requests.map(({ refused }) => refused)).toEqual([null, null])
  const second = requests[1]?.body as { messages: object[] } | undefined
  expect(second?.messages).toContainEqual(expect.objectContaining({ role: 'assistant', reasoning: 'I have to look.' }))
})

test('an answer that is cut says so, in its text and in the stored turn', async () => {
  const { body, end } = await turn('tell me all', { text: 'First,', cutShort: true })
  expect(body.response).toBe('First,\n\n[The answer is cut off: the model has used up its output tokens.]')
  expect(end).toMatchObject({ status: 'done', finish_reason: 'length' })
  model.script({ text: 'First,', cutShort: true })
  const command = await run('full', ['agent', '--json', '-m', 'tell me all', '--data-dir', folder.dir])
  expect(JSON.parse(command.stdout)).toMatchObject({ response: body.response, finish_reason: 'length' })
})

test('reasoning in tags is not part of the answer', async () => {
  expect((await turn('think', { text: '<think>Hm.</think>\n\nYes.' })).body.response).toBe('Yes.')
})

test('an error under status 200 is retried, and a used-up quota is not', async () => {
  const passing = await turn('again', { status: 200, body: { error: { code: 502, message: 'no upstream' } } })
  expect([passing.body.response, passing.requests.length]).toEqual(['You said: again', 2])
  const error = { message: 'You exceeded your current quota', type: 'insufficient_quota', code: 'insufficient_quota' }
  const final = await turn('again', { status: 429, body: { error } })
  expect([final.status, final.requests.length]).toEqual([502, 1])
})

// The last test: the daemon remembers the limit.
test('a model that takes no tools answers without them, and the operator learns of it', async () => {
  const refusal = { status: 400, body: { error: { message: 'test does not support tools' } } }
  const { body, requests } = await turn('hello', refusal)
  expect(body.response).toBe('You said: hello')
  expect(requests.map((request) => 'tools' in (request.body as object))).toEqual([true, false])
  expect((await turn('hello')).requests.map((request) => 'tools' in (request.body as object))).toEqual([false])
  const doctor = await run('full', ['doctor', '--data-dir', folder.dir])
  expect(doctor.stdout).toContain('groq:test does not support tools')
})
