/** The requests to a model: every request of six tasks is recorded, compared with the one before it byte for byte, and priced. */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createSluice, type Sluice } from '@sluice/daemon'
import mcp from '@sluice/mcp'
import { type ModelRequest, type ModelServer, type ModelStep, startModelServer } from '@sluice/testkit/model-server'
import pdf from '@sluice/tool-pdf'
import schedule from '@sluice/tool-schedule'
import skills from '@sluice/tool-skills'
import web from '@sluice/tool-web'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { always } from '../../../profiles/always.ts'

interface Message {
  readonly role: string
  readonly content?: unknown
}

let server: ModelServer
let sluice: Sluice
let dataDir: string
/** The steps of the running task: a reply for each request after the message of the person. */
let steps: readonly ModelStep[] = []

const messagesOf = ({ body }: ModelRequest): readonly Message[] => (body as { messages: Message[] }).messages
const isSummary = (request: ModelRequest): boolean =>
  JSON.stringify(messagesOf(request)[0]).includes('You write the memory of an assistant')

function answer(request: ModelRequest): ModelStep {
  if (isSummary(request)) return { text: 'Wanted: a plan.' }
  const messages = messagesOf(request)
  const since = messages.slice(messages.findLastIndex(({ role }) => role === 'user') + 1)
  return steps[since.filter(({ role }) => role === 'assistant').length] ?? { text: 'Done.' }
}

beforeAll(async () => {
  dataDir = mkdtempSync(join(tmpdir(), 'recorded-'))
  const workspace = join(dataDir, 'workspace')
  mkdirSync(workspace)
  writeFileSync(join(workspace, 'notes.md'), '# Plan\n\n- freeze on Friday\n- ship on Monday\n')
  const log = Array.from(
    { length: 12_000 },
    (_, at) => `2026-11-29T10:00:00Z ${at % 997 === 0 ? 'ERROR' : 'INFO'} worker ${at} did its job`,
  )
  writeFileSync(join(workspace, 'big.log'), `${log.join('\n')}\n`)
  writeFileSync(join(workspace, 'numbers.txt'), `${Array.from({ length: 60_000 }, (_, at) => at + 1).join('\n')}\n`)
  writeFileSync(join(workspace, 'oneline.json'), JSON.stringify({ values: Array.from({ length: 90_000 }, (_, at) => at) }))
  server = await startModelServer({ apiKey: null, answer })
  sluice = await createSluice({
    features: [...always, pdf, mcp, skills, schedule, web],
    dataDir,
    logger: false,
    config: {
      provider: { kind: 'openai', base_url: `${server.url}/v1`, model: 'small', context_window: 200_000 },
      security: { policy: { level: 'full' } },
    },
  })
})

afterAll(async () => {
  await sluice?.close()
  await server?.close()
  rmSync(dataDir, { recursive: true, force: true })
})

let from = 0
beforeEach(() => {
  from = server.requests.length
  steps = []
})
const recorded = (): readonly ModelRequest[] => server.requests.slice(from)

const calls = (...names: readonly (readonly [name: string, input: unknown])[]): ModelStep[] =>
  names.map(([name, input]) => ({ toolCalls: [{ name, input }] }))

/** A request in the order in which providers cache it: tools, then messages. */
const cacheable = ({ body }: ModelRequest): string => {
  const { tools = [], messages } = body as { tools?: unknown[]; messages: Message[] }
  return [JSON.stringify(tools), ...messages.map((message) => JSON.stringify(message))].join('\n')
}

const sharedChars = (a: string, b: string): number => {
  let at = 0
  while (at < a.length && a[at] === b[at]) at++
  return at
}

/** The smallest part of a request that the next one repeats from its beginning. */
function prefixKept(requests: readonly ModelRequest[]): number {
  const texts = requests.map(cacheable)
  return Math.min(...texts.slice(1).map((text, at) => sharedChars(texts[at] ?? '', text) / (texts[at]?.length ?? 1)))
}

const OTHER_CHARS = 4.2
/** Up to three digits are a token, and so is a line break. The encoding `o200k` has 2 % fewer tokens of the short messages, and 16 % more of the huge results. */
const tokensOf = (text: string): number => {
  const own = text.match(/\d{1,3}|\\n/g) ?? []
  return own.length + (text.length - own.join('').length) / OTHER_CHARS
}

/** The price of requests in tokens: what the one before has costs a tenth, and everything else a quarter more. */
function billed(requests: readonly ModelRequest[]): number {
  let before = ''
  let sum = 0
  for (const request of requests) {
    const text = cacheable(request)
    const shared = sharedChars(before, text)
    sum += tokensOf(text.slice(0, shared)) * 0.1 + tokensOf(text.slice(shared)) * 1.25
    before = text
  }
  return sum
}

const PAGE = readFileSync(join(import.meta.dirname, '../../../docs/agent.md'), 'utf8')
/** The figures of the page equal the figures of this file, except for names of days and months, which have different lengths. */
const SPREAD = 0.01

/** Compares the recorded requests with the row of docs/agent.md about their task. */
function expectRow(task: string): void {
  const cells = PAGE.split('\n')
    .find((line) => line.startsWith(`| ${task}`))
    ?.split('|')
    .map((cell) => Number(cell.replace(/[ ,%]/g, '')))
  const requests = recorded()
  const input = requests.reduce((tokens, request) => tokens + tokensOf(cacheable(request)), 0)
  const measured = [requests.length, Math.round(input), Math.round(billed(requests)), prefixKept(requests) * 100]
  const [count, tokens, price, kept] = cells?.slice(2, 6) ?? []
  const isNear = (figure = 0, real = 0) => Math.abs(figure - real) <= real * SPREAD
  const isRight = count === measured[0] && isNear(tokens, measured[1]) && isNear(price, measured[2]) && kept === measured[3]
  expect(isRight, `docs/agent.md, "${task}": the figures are ${measured.join(', ')}`).toBe(true)
}

test('three short messages take at most 9,200 tokens, and each request extends the one before it', async () => {
  for (const text of ['hello', 'how are you?', 'thanks']) await sluice.run(text, { session: 'short' })
  expect(recorded()).toHaveLength(3)
  expect(recorded().reduce((tokens, request) => tokens + tokensOf(cacheable(request)), 0)).toBeLessThan(9200)
  expectRow('three short messages')
})

test('an edit of a file keeps the whole prefix', async () => {
  steps = [
    ...calls(['file_list', {}], ['file_read', { path: 'notes.md' }], ['file_write', { path: 'copy.md', content: '# Release plan\n' }]),
    ...calls(['shell', { command: 'grep -n ship notes.md' }], ['file_read', { path: 'copy.md' }]),
    { text: 'Done.' },
  ]
  await sluice.run('change the title', { session: 'edit' })
  expectRow('edit a file')
})

test('huge results are cut once, described where a line is too long, and cost little', async () => {
  steps = [
    ...calls(['shell', { command: 'cat numbers.txt' }], ['file_read', { path: 'big.log' }], ['file_read', { path: 'oneline.json' }]),
    ...calls(['shell', { command: 'grep -n ERROR big.log' }]),
    { text: 'Read.' },
  ]
  await sluice.run('read all of it', { session: 'huge' })
  expectRow('read results of')
  expect(billed(recorded()) * 1.16).toBeLessThan(49_630)
  const last = cacheable(recorded()[4] ?? expect.fail('the fifth request is missing'))
  expect(last).toMatch(/The result is in results\/[^ ]*: read on with file_read/)
  expect(last.length).toBeLessThan(200_000)
})

test('thirty steps are finished in one turn', async () => {
  steps = [
    ...calls(...Array.from({ length: 30 }, (_, at) => ['shell', { command: `echo step ${at}` }] as const)),
    { text: 'thirty steps done' },
  ]
  expect((await sluice.run('go', { session: 'steps' })).text).toBe('thirty steps done')
  expectRow('thirty steps')
})

test('six turns with eight calls each need no summary', async () => {
  steps = [
    ...calls(...Array.from({ length: 8 }, (_, at) => ['file_read', { path: 'notes.md', offset: at + 1 }] as const)),
    { text: 'read' },
  ]
  for (let turn = 0; turn < 6; turn++) await sluice.run(`look ${turn}`, { session: 'work' })
  expect(recorded().filter(isSummary)).toEqual([])
  expect(recorded()).toHaveLength(54)
  expect(prefixKept(recorded())).toBe(1)
})

test('wrong arguments and unknown tools keep the prefix and are named', async () => {
  steps = [
    ...calls(['file_read', { place: 'notes.md' }], ['read_file', { path: 'notes.md' }], ['file_read', { path: 'gone.md' }]),
    { text: 'ok' },
  ]
  await sluice.run('try', { session: 'wrong' })
  const last = cacheable(recorded().at(-1) ?? expect.fail('no request'))
  expect(last).toContain(String.raw`did you mean \"path\"?`)
  expect(last).toContain('There is no tool')
  expect(prefixKept(recorded())).toBe(1)
})

test('a memory is recalled in another conversation without being asked for, before and after the next message', async () => {
  steps = [...calls(['memory_store', { key: 'cat', content: 'The cat of Ada is called Minka' }]), { text: 'Kept.' }]
  await sluice.run('keep it', { session: 'first' })
  steps = []
  await sluice.run('What is the name of the cat of Ada?', { session: 'second' })
  await sluice.run('thanks', { session: 'second' })
  const [asked, thanked] = recorded().slice(-2)
  expect(JSON.stringify(messagesOf(asked ?? expect.fail('no request')).at(-1))).toContain('cat: The cat of Ada is called Minka')
  expect(prefixKept([asked, thanked].filter((one) => one !== undefined))).toBe(1)
})
