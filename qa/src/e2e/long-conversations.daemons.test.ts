/** Tests conversations that outgrow the window in a built daemon: the prompts of the model, the stored summary, and crashes. */
import { type ModelRequest, type ModelServer, type ModelStep, startModelServer } from '@sluice/testkit/model-server'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { eventually, post, type RunningDaemon, run, scratch, startDaemon, token } from '../daemons/bundle.ts'

let model: ModelServer
let folder: ReturnType<typeof scratch>
let daemon: RunningDaemon
let bearer: string
/** The answers to turns; summaries are made by `answer`. */
let reply: ModelStep = { text: 'Noted.' }
/** A summary waits for this. */
let mayAnswer: Promise<void> = Promise.resolve()

const bodyOf = ({ body }: ModelRequest): string => JSON.stringify(body)
const isSummary = (request: ModelRequest): boolean => bodyOf(request).includes('You write the memory of an assistant')
const summaries = (from = 0): ModelRequest[] => model.requests.slice(from).filter(isSummary)
const prompts = (from = 0): ModelRequest[] => model.requests.slice(from).filter((request) => !isSummary(request))

/** A summary is every fact, such as `fact-3`, of the text to summarise. */
async function answer(request: ModelRequest): Promise<ModelStep> {
  if (!isSummary(request)) return reply
  await mayAnswer
  return { text: `Facts: ${[...new Set(bodyOf(request).match(/fact-\d+/g))].join(' ')}` }
}

beforeAll(async () => {
  model = await startModelServer({ apiKey: null, models: ['test'], answer })
  folder = scratch(`
[provider]
kind = "anthropic"
base_url = "${model.url}/v1"
api_key = "test"
model = "test"

[agent]
max_history_messages = 10
max_retries = 0

[gateway]
webhook_rate_limit_per_minute = 0
`)
  daemon = await startDaemon('full', folder.dir)
  bearer = await token('full', folder.dir)
}, 60_000)

afterAll(async () => {
  daemon.kill('SIGKILL')
  await daemon.exited
  await model.close()
  folder.dispose()
})

const headers = (session: string) => ({ authorization: `Bearer ${bearer}`, 'x-session-id': session })
const say = (session: string, message: string, more: Record<string, string> = {}) =>
  post(`${daemon.url}/webhook`, { message }, { ...headers(session), ...more })
const get = async (path: string): Promise<unknown> =>
  (await fetch(`${daemon.url}${path}`, { headers: { authorization: `Bearer ${bearer}` } })).json()

async function fill(session: string, turns = 6): Promise<void> {
  for (let turn = 0; turn < turns; turn++) expect((await say(session, `fact-${turn}`)).status).toBe(200)
}

test('a later turn gets the summary, and every message stays readable', async () => {
  await fill('long')
  const from = model.requests.length
  expect((await say('long', 'What do you know?')).body.response).toBe('Noted.')
  expect(summaries(from)).toHaveLength(1)
  const [asked] = prompts(from)
  expect(asked?.refused).toBeNull()
  expect(asked && bodyOf(asked)).toContain('Facts: fact-0 fact-1')
  expect(asked && bodyOf(asked)).not.toContain('"fact-0"')
  await say('long', 'And now?')
  expect(summaries(from)).toHaveLength(1)

  expect(await get('/api/sessions/long')).toMatchObject({
    message_count: 16,
    summary: { text: 'Facts: fact-0 fact-1 fact-2 fact-3', messages: 8, model: 'test', untrusted: false },
  })
  const shown = await run('full', ['sessions', 'export', await storedId('long'), '--data-dir', folder.dir])
  const lines = shown.stdout.trim().split('\n')
  expect(lines).toHaveLength(17)
  expect(JSON.parse(lines[0] ?? '')).toMatchObject({ role: 'user', content: 'fact-0' })
  expect(JSON.parse(lines[16] ?? '')).toMatchObject({ role: 'summary', messages: 8 })
  const { stdout } = await run('full', ['sessions', 'show', await storedId('long'), '--limit', '1', '--data-dir', folder.dir])
  expect(stdout).toMatch(/summary of the first 8 messages {2}Facts: fact-0/)
  expect(stdout).toContain('assistant  Noted.')
})

/** The id of a session of the device, as operators name it. */
async function storedId(name: string): Promise<string> {
  const { stdout } = await run('full', ['sessions', 'list', '--json', '--data-dir', folder.dir])
  const { sessions } = JSON.parse(stdout) as { sessions: { session_id: string }[] }
  return sessions.find(({ session_id }) => session_id.endsWith(`/${name}`))?.session_id ?? expect.fail('no such session')
}

test('a summary outlives SIGKILL, and the resumed turn does not write it again', async () => {
  await fill('crash')
  const from = model.requests.length
  reply = { fault: 'hang' }
  say('crash', 'fact-99', { 'x-idempotency-key': 'crash-1' }).catch(() => undefined)
  await eventually(
    async () => prompts(from).length,
    (count) => count === 1,
  )
  daemon.kill('SIGKILL')
  await daemon.exited
  reply = { text: 'Noted.' }
  daemon = await startDaemon('full', folder.dir)
  const session = await eventually(
    async () => (await get('/api/sessions/crash')) as { message_count: number; summary: object },
    ({ message_count }) => message_count === 14,
  )
  expect(session.summary).toMatchObject({ text: 'Facts: fact-0 fact-1 fact-2 fact-3', messages: 8 })
  expect(summaries(from)).toHaveLength(1)
  expect(bodyOf(prompts(from)[1] ?? expect.fail('the turn did not resume'))).toContain('Facts: fact-0')
})

test('a crash in the middle of a summary loses nothing', async () => {
  await fill('torn')
  const from = model.requests.length
  model.script({ fault: 'hang' })
  say('torn', 'fact-99', { 'x-idempotency-key': 'torn-1' }).catch(() => undefined)
  await eventually(
    async () => summaries(from).length,
    (count) => count === 1,
  )
  daemon.kill('SIGKILL')
  await daemon.exited
  daemon = await startDaemon('full', folder.dir)
  await eventually(
    async () => (await get('/api/sessions/torn')) as { message_count: number },
    ({ message_count }) => message_count === 14,
  )
  expect(summaries(from)).toHaveLength(2)
  expect(await get('/api/sessions/torn')).toMatchObject({ summary: { messages: 8 } })
})

test('erasing a session while its summary is written leaves neither', async () => {
  await fill('erased')
  const from = model.requests.length
  const written = Promise.withResolvers<void>()
  mayAnswer = written.promise
  const turn = say('erased', 'Who am I?')
  await eventually(
    async () => summaries(from).length,
    (count) => count === 1,
  )
  const answered = await fetch(`${daemon.url}/api/sessions/erased`, { method: 'DELETE', headers: headers('erased') })
  expect(answered.status).toBe(200)
  written.resolve()
  expect((await turn).status).toBe(200)
  expect(await get('/api/sessions/erased')).toMatchObject({ message_count: 2, summary: null })
  expect(bodyOf(prompts(from)[0] ?? expect.fail('no turn'))).not.toContain('fact-')
})
