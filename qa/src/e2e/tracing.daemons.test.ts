/** The tree of spans that a collector receives: through the inbox, tools, models and procedures. See docs/contract.md#observability. */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type ChatappFake, startChatappFake } from '@sluice/channel-chatapp/testing'
import { type Daemon, startDaemon } from '@sluice/daemon'
import { systemClock } from '@sluice/kit'
import otel from '@sluice/observability-otel'
import { formatTraceContext, type Logger } from '@sluice/sdk'
import { openStore } from '@sluice/store'
import type { Chat } from '@sluice/testkit/chat'
import { testHost } from '@sluice/testkit/host'
import { type ModelServer, startModelServer } from '@sluice/testkit/model-server'
import { parseTextMetrics } from '@sluice/testkit/text-metrics'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { always } from '../../../profiles/always.ts'
import { CHATAPP_PERSON, chatappRequest } from '../daemons/chatapp-requests.ts'
import { startChat } from '../daemons/chats.ts'
import { sendRequest } from '../daemons/send-request.ts'
import { type OtlpReceiver, type ReceivedSpan, startOtlpReceiver } from '../otlp-receiver.ts'

// Several daemons start and stop here.
vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 })

const CALLER = { traceId: '0af7651916cd43dd8448eb211c80319c', spanId: 'b7ad6b7169203331', state: 'vendor=1' }
const TRACED: readonly (readonly [string, string])[] = [
  ['traceparent', `00-${CALLER.traceId}-${CALLER.spanId}-01`],
  ['tracestate', CALLER.state],
]
const CODE = 'opal-4711'
const TEXT = `the launch code is ${CODE}`
const APP_SECRET = 'chatapp-app-secret-01'

let dataDir: string
let collector: OtlpReceiver
let model: ModelServer
let chatapp: ChatappFake
const running: Daemon[] = []

beforeEach(async () => {
  dataDir = mkdtempSync(join(tmpdir(), 'sluice-tracing-'))
  ;[collector, model, chatapp] = await Promise.all([startOtlpReceiver(), startModelServer(), startChatappFake()])
})
afterEach(async () => {
  for (const daemon of running.splice(0)) await daemon.stop()
  await Promise.all([collector.close(), model.close(), chatapp.close()])
  rmSync(dataDir, { recursive: true, force: true })
})

interface StartOptions {
  /** The backends, as keys of the section. */
  readonly observability?: string
  /** Gets the log at level `info`. */
  readonly logger?: Logger
}

async function start(toml = '', { observability = 'backend = "otlp"', logger }: StartOptions = {}): Promise<Daemon> {
  const configFile = join(dataDir, 'config.toml')
  const config = `[log]
level = "${logger ? 'info' : 'error'}"
[gateway]
require_pairing = false
[provider]
kind = "openai"
model = "small-1"
base_url = "${model.url}/v1"
api_key = "${model.apiKey}"
[observability]
${observability}
otel_endpoint = "${collector.url}"
otel_service_name = "kitchen"
[sop]
take_over = true
[channels_config.chatapp]
access_token = "${chatapp.accessToken}"
phone_number_id = "${chatapp.phoneNumberId}"
verify_token = "vt-01"
app_secret = "${APP_SECRET}"
allowed_numbers = ["*"]
api_url = "${chatapp.url}"
${toml}`
  writeFileSync(configFile, config, { mode: 0o600 })
  const features = [...always, otel]
  const options = { features, dataDir, configFile, env: {}, profile: 'test', version: '0', host: '127.0.0.1', port: 0, logger }
  const daemon = await startDaemon(options)
  running.push(daemon)
  return daemon
}

function procedure(name: string, toml: string, steps: string): void {
  const folder = join(dataDir, 'sops', name)
  mkdirSync(folder, { recursive: true })
  const about = `[sop]\nname = "${name}"\ndescription = "A test"\nversion = "1.0.0"\npriority = "normal"\n`
  writeFileSync(join(folder, 'SOP.toml'), `${about}${toml}`)
  writeFileSync(join(folder, 'SOP.md'), `# ${name}\n\n## Steps\n\n${steps}`)
}

/** The names of the span and its received ancestors, such as `request > turn`. */
function path(spans: readonly ReceivedSpan[], span: ReceivedSpan): string {
  const parent = spans.find(({ spanId }) => spanId === span.parentId)
  return parent ? `${path(spans, parent)} > ${span.name}` : span.name
}

const paths = (spans: readonly ReceivedSpan[]) => spans.map((span) => path(spans, span)).toSorted()

const named = (spans: readonly ReceivedSpan[], name: string): ReceivedSpan => {
  const span = spans.find((candidate) => candidate.name === name)
  if (!span) throw new Error(`The collector got no span "${name}".`)
  return span
}

const ofCaller = ({ traceId }: ReceivedSpan) => traceId === CALLER.traceId

/** The trace id and parent id in the headers of an outgoing request. */
const parentIn = (headers: Headers | undefined) => headers?.get('traceparent')?.split('-').slice(1, 3)

describe('a message of a chat', () => {
  test('is one tree from the webhook request to the sending of the reply', async () => {
    const seen: Headers[] = []
    const site = createServer((incoming, outgoing) => {
      seen.push(new Headers(incoming.headers as Record<string, string>))
      outgoing.end('fine')
    })
    await new Promise<void>((resolve) => site.listen(0, '127.0.0.1', resolve))
    const address = site.address()
    const port = typeof address === 'object' ? address?.port : 0
    try {
      model.script({ toolCalls: [{ name: 'http_request', input: { url: `http://127.0.0.1:${port}/` } }] }, { text: 'Done.' })
      const { url } = await start('[tools.http_request]\nallowed_domains = ["127.0.0.1"]\n[http]\nallow_private = ["127.0.0.1"]\n')
      const { headers = [], ...request } = chatappRequest({ id: 'wamid.1', text: TEXT })
      expect(await sendRequest(url, { ...request, headers: [...headers, ...TRACED] })).toMatchObject({ status: 200 })
      const spans = await collector.until(8, ofCaller)
      const inbound = 'POST /chatapp > receive chatapp > process chatapp'
      expect(paths(spans)).toEqual([
        'POST /chatapp',
        'POST /chatapp > receive chatapp',
        inbound,
        `${inbound} > turn chatapp`,
        `${inbound} > turn chatapp > chat small-1`,
        `${inbound} > turn chatapp > chat small-1`,
        `${inbound} > turn chatapp > execute_tool http_request`,
        `${inbound} > turn chatapp > send chatapp`,
      ])
      expect(collector.refusals).toEqual([])
      expect(named(spans, 'POST /chatapp').parentId).toBe(CALLER.spanId)
      for (const span of spans) {
        expect(span).toMatchObject({ traceState: CALLER.state, isError: false, resource: { 'service.name': 'kitchen' } })
        expect(span.endNano).toBeGreaterThanOrEqual(span.startNano)
      }

      // Each outgoing request names the span that made it.
      const calls = spans.filter(({ name }) => name === 'chat small-1').map(({ spanId }) => [CALLER.traceId, spanId])
      expect(model.requests.map(({ headers }) => parentIn(headers))).toEqual(expect.arrayContaining(calls))
      expect(seen.map(parentIn)).toEqual([[CALLER.traceId, named(spans, 'execute_tool http_request').spanId]])
      const reply = chatapp.requests.find(({ json }) => (json as { readonly type?: string } | undefined)?.type === 'text')
      expect(parentIn(reply?.headers)).toEqual([CALLER.traceId, named(spans, 'send chatapp').spanId])
      for (const headers of [reply?.headers, seen[0], model.requests[0]?.headers]) expect(headers?.get('tracestate')).toBe(CALLER.state)

      const exported = collector.bodies.join('\n')
      for (const secret of [CODE, 'Done.', CHATAPP_PERSON, APP_SECRET, model.apiKey, chatapp.accessToken, dataDir]) {
        expect(exported).not.toContain(secret)
      }
    } finally {
      site.close()
    }
  })

  test('is logged, counted and traced at the same time, without its text', async () => {
    const { log, logs } = testHost()
    const daemon = await start('', { observability: 'backends = ["log", "textmetrics", "otlp"]', logger: log })
    model.script({ text: 'Done.' })
    const { headers = [], ...request } = chatappRequest({ id: 'wamid.1', text: TEXT })
    await sendRequest(daemon.url, { ...request, headers: [...headers, ...TRACED] })
    await collector.until(6, ofCaller)
    const found = (message: string, fields: object) =>
      logs.filter((line) => line.message === message && Object.entries(fields).every(([name, value]) => line.fields[name] === value))
    await expect.poll(() => found('delivery finished', { channel: 'chatapp', outcome: 'ok' })).toHaveLength(2)
    // One line for the turn and one for each direction, at the default level, whatever the backends.
    expect(found('turn finished', { source: 'chatapp', model: 'small-1' })).toHaveLength(1)
    for (const direction of ['inbound', 'outbound'])
      expect(found('delivery finished', { direction, trace_id: CALLER.traceId })).toHaveLength(1)
    // The lines of the backend.
    expect(found('turn', { component: 'observability', source: 'chatapp', trace_id: CALLER.traceId })).toHaveLength(1)

    const body = await (await fetch(`${daemon.url}/metrics`)).text()
    expect(Object.fromEntries(parseTextMetrics(body).values)).toMatchObject({
      'sluice_deliveries_total{channel="chatapp",direction="outbound",outcome="ok"}': 1,
      'sluice_turns_total{source="chatapp",provider="openai",model="small-1",outcome="ok"}': 1,
    })
    for (const text of [CODE, 'Done.', APP_SECRET, model.apiKey, chatapp.accessToken]) {
      expect(body).not.toContain(text)
      expect(JSON.stringify(logs)).not.toContain(text)
    }
  })

  test('continues below the receiving span after a restart', async () => {
    const store = openStore({ file: join(dataDir, 'sluice.db'), clock: systemClock, log: testHost().log })
    const message = { id: 'wamid.1', account: chatapp.phoneNumberId, sender: CHATAPP_PERSON, to: { to: CHATAPP_PERSON }, text: TEXT }
    const trace = formatTraceContext({ ...CALLER, parentId: null })
    const about = { channel: 'chatapp', verdict: 'x-hub-signature-256', raw: null, receivedAtMs: Date.now(), trace }
    await store.inbox.keep({ ...about, messages: [{ message, session: 'chatapp:ada' }] })
    await store.close()
    await start()
    const spans = await collector.until(4, ofCaller)
    expect(paths(spans)).toEqual([
      'process chatapp',
      'process chatapp > turn chatapp',
      'process chatapp > turn chatapp > chat small-1',
      'process chatapp > turn chatapp > send chatapp',
    ])
    expect(named(spans, 'process chatapp')).toMatchObject({ parentId: CALLER.spanId, traceState: CALLER.state })
  })
})

describe('a chat that holds a connection', () => {
  let telegram: Chat
  beforeEach(async () => {
    telegram = await startChat('telegram')
  })
  afterEach(() => telegram.close())

  const section = () =>
    ['[channels_config.telegram]', ...Object.entries(telegram.config).map(([key, value]) => `${key} = ${JSON.stringify(value)}`), ''].join(
      '\n',
    )

  test('begins a trace with each message, which ends with the reply', async () => {
    await start(section())
    telegram.say({ text: TEXT })
    const spans = await collector.until(5)
    const inbound = 'receive telegram > process telegram'
    expect(paths(spans)).toEqual([
      'receive telegram',
      inbound,
      `${inbound} > turn telegram`,
      `${inbound} > turn telegram > chat small-1`,
      `${inbound} > turn telegram > send telegram`,
    ])
    expect(named(spans, 'receive telegram').parentId).toBeNull()
  })

  test('sends a notification below the request of its event', async () => {
    const { url } = await start(section())
    const event = { type: 'note', channels: ['messenger'], content: { title: 'T', message: TEXT } }
    const answer = await sendRequest(url, { path: '/api/channel-events', body: JSON.stringify(event), headers: TRACED })
    expect(answer).toMatchObject({ status: 200 })
    const spans = await collector.until(2, ofCaller)
    expect(paths(spans)).toEqual(['POST /api/channel-events', 'POST /api/channel-events > send telegram'])
    const sent = telegram.requests.find(({ path }) => path.endsWith('/sendMessage'))
    expect(parentIn(sent?.headers)).toEqual([CALLER.traceId, named(spans, 'send telegram').spanId])
    expect(collector.bodies.join('')).not.toContain(CODE)
  })
})

describe('a procedure', () => {
  test('is a run below its request, with steps below the run and turns below the steps', async () => {
    procedure(
      'ship',
      'execution_mode = "auto"\n[[triggers]]\ntype = "webhook"\npath = "/ship"\n',
      '1. **Look** - Looks.\n\n2. **Tell** - Tells.\n',
    )
    const { url } = await start()
    const answer = await sendRequest(url, { path: '/ship', body: JSON.stringify({ note: TEXT }), headers: TRACED })
    expect(answer).toMatchObject({ status: 200 })
    const spans = await collector.until(8, ofCaller)
    const run = 'POST trigger > sop_run ship'
    expect(paths(spans)).toEqual([
      'POST trigger',
      run,
      ...[1, 2].flatMap((step) => [
        `${run} > sop_step ship ${step}`,
        `${run} > sop_step ship ${step} > turn sop`,
        `${run} > sop_step ship ${step} > turn sop > chat small-1`,
      ]),
    ])
    expect(named(spans, 'sop_step ship 1').attributes).toMatchObject({
      'sluice.sop': 'ship',
      'sluice.step': 1,
      'sluice.outcome': 'completed',
    })
    expect(collector.bodies.join('\n')).not.toContain(CODE)
  })

  test('without a model has the tool call below its step', async () => {
    const step = '1. **Note** - Writes it down.\n   - tools: file_write\n   - input: {"path": "note.txt", "content": "$event.text"}\n'
    procedure('note', 'execution_mode = "deterministic"\n[[triggers]]\ntype = "webhook"\npath = "/chatapp"\nrole = "stranger"\n', step)
    const { url } = await start()
    const { headers = [], ...request } = chatappRequest({ id: 'wamid.1', text: TEXT })
    await sendRequest(url, { ...request, headers: [...headers, ...TRACED] })
    const spans = await collector.until(5, ofCaller)
    const run = 'POST /chatapp > receive chatapp > sop_run note'
    expect(paths(spans)).toEqual([
      'POST /chatapp',
      'POST /chatapp > receive chatapp',
      run,
      `${run} > sop_step note 1`,
      `${run} > sop_step note 1 > execute_tool file_write`,
    ])
  })
})

test('a request without trace context begins a trace of its own', async () => {
  const { url } = await start()
  await sendRequest(url, { path: '/webhook', body: JSON.stringify({ message: TEXT }) })
  const spans = await collector.until(3)
  expect(paths(spans)).toEqual(['POST /webhook', 'POST /webhook > turn webhook', 'POST /webhook > turn webhook > chat small-1'])
  expect(new Set(spans.map(({ traceId }) => traceId)).size).toBe(1)
  expect(named(spans, 'POST /webhook').parentId).toBeNull()
})

test('no trace context is sent while tracing is off', async () => {
  const { url, runtime } = await start()
  await runtime.reload(readFileSync(join(dataDir, 'config.toml'), 'utf8').replace('"otlp"', '"none"'))
  await sendRequest(url, { path: '/webhook', body: JSON.stringify({ message: TEXT }), headers: TRACED })
  expect(model.requests.map(({ headers }) => headers.has('traceparent'))).toEqual([false])
})
