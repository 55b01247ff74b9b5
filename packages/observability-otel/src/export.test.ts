import { type OtlpReceiver, type ReceivedSpan, startOtlpReceiver } from '@sluice/qa/otlp-receiver'
import type { Host, Observation, Observer, Parts, Trace } from '@sluice/sdk'
import { testClock } from '@sluice/testkit/clock'
import { testHost } from '@sluice/testkit/host'
import * as v from 'valibot'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import feature from './index.ts'
import { DELAY_MS } from './span-queue.ts'

const opened: { close?(): Promise<void> }[] = []
afterEach(async () => {
  for (const resource of opened.splice(0).reverse()) await resource.close?.()
})

const receiver = async (): Promise<OtlpReceiver> => {
  const started = await startOtlpReceiver()
  opened.push(started)
  return started
}

const build = (host: Host, config: object): Parts & { readonly observer: Observer } => {
  const schema = feature.section?.schema ?? v.object({})
  const parts = feature.build(host, v.parse(schema, config))
  const [observer] = parts.observers ?? []
  if (!observer) throw new Error('The feature has no observer')
  return { ...parts, observer }
}

const TRACE: Trace = { traceId: '0af7651916cd43dd8448eb211c80319c', spanId: 'b7ad6b7169203331', parentId: '00f067aa0ba902b7', state: 'v=1' }
const span = { trace: TRACE, startMs: 1_767_225_600_000.25, tookMs: 1.5 }

describe('observability-otel', () => {
  // The thread of an exporter loads its libraries for longer than all of these tests take, so that they share one.
  let collector: OtlpReceiver
  let exporter: ReturnType<typeof build>
  beforeAll(async () => {
    collector = await startOtlpReceiver()
    const clock = testClock()
    // A batch is sent at once. The time limit of its answer never passes, however long a busy machine takes to start the thread.
    const sleep = async (ms: number, signal?: AbortSignal): Promise<void> => (ms === DELAY_MS ? undefined : clock.sleep(ms, signal))
    exporter = build(testHost({ clock: { ...clock, sleep } }), { otel_endpoint: collector.url, otel_service_name: 'kitchen' })
  })
  afterAll(async () => {
    await exporter.close?.()
    await collector.close()
  })

  const exported = async (...observations: Observation[]): Promise<readonly ReceivedSpan[]> => {
    const before = collector.spans.length
    for (const observation of observations) exporter.observer.record(observation)
    await expect.poll(() => collector.spans.length - before).toBe(observations.length)
    expect(collector.refusals).toEqual([])
    return collector.spans.slice(before)
  }

  test('exports a span with its ids, parent, state, times and service name', async () => {
    const [seen] = await exported({ kind: 'tool_call', tool: 'shell', outcome: 'ok', span })
    expect(seen).toMatchObject({
      traceId: TRACE.traceId,
      spanId: TRACE.spanId,
      parentId: TRACE.parentId,
      traceState: 'v=1',
      startNano: 1_767_225_600_000_250_000n,
      endNano: 1_767_225_600_001_750_000n,
      isError: false,
      scope: 'sluice',
      resource: { 'service.name': 'kitchen', 'service.instance.id': expect.any(String) },
    })
  })

  test('exports a root without a parent', async () => {
    const [seen] = await exported({
      kind: 'tool_call',
      tool: 'shell',
      outcome: 'ok',
      span: { ...span, trace: { ...TRACE, parentId: null } },
    })
    expect(seen?.parentId).toBeNull()
  })

  test('describes a model call by the conventions for generative AI', async () => {
    const call = { kind: 'model_call', provider: 'openai', model: 'gpt-x', inputTokens: 12, outputTokens: 7, costUsd: 0.25, span } as const
    const [succeeded, failed] = await exported({ ...call, outcome: 'ok' }, { ...call, outcome: 'error' })
    expect(succeeded).toMatchObject({ name: 'chat gpt-x', kind: 'client', isError: false })
    expect(succeeded?.attributes).toEqual({
      'gen_ai.operation.name': 'chat',
      'gen_ai.provider.name': 'openai',
      'gen_ai.system': 'openai',
      'gen_ai.request.model': 'gpt-x',
      'gen_ai.usage.input_tokens': 12,
      'gen_ai.usage.output_tokens': 7,
      'sluice.cost_usd': 0.25,
    })
    expect(failed).toMatchObject({ isError: true, attributes: { 'error.type': '_OTHER' } })
  })

  const KINDS: readonly [observation: Observation, expected: Partial<ReceivedSpan>][] = [
    [
      { kind: 'request', method: 'POST', route: '/webhook', status: 503, span },
      {
        name: 'POST /webhook',
        kind: 'server',
        isError: true,
        attributes: { 'http.request.method': 'POST', 'http.route': '/webhook', 'http.response.status_code': 503, 'error.type': '503' },
      },
    ],
    [
      { kind: 'request', method: 'GET', route: '/x', status: 404, span },
      { kind: 'server', isError: false },
    ],
    [
      { kind: 'ingress', channel: 'roomchat', verdict: 'kept', signed: true, span },
      {
        name: 'receive roomchat',
        kind: 'consumer',
        isError: false,
        attributes: { 'messaging.system': 'roomchat', 'sluice.verdict': 'kept' },
      },
    ],
    [
      { kind: 'ingress', channel: 'roomchat', verdict: 'refused', signed: false, span },
      { isError: true, attributes: { 'error.type': 'refused', 'sluice.signed': false } },
    ],
    [
      { kind: 'turn', source: 'roomchat', provider: 'anthropic', model: 'm', outcome: 'ok', iterations: 2, span },
      {
        name: 'turn roomchat',
        kind: 'internal',
        attributes: { 'gen_ai.operation.name': 'invoke_agent', 'gen_ai.provider.name': 'anthropic', 'sluice.iterations': 2 },
      },
    ],
    [
      { kind: 'tool_call', tool: 'shell', outcome: 'aborted', span },
      { name: 'execute_tool shell', isError: false, attributes: { 'gen_ai.tool.name': 'shell', 'sluice.outcome': 'aborted' } },
    ],
    [
      { kind: 'delivery', channel: 'slack', direction: 'inbound', number: 1, outcome: 'ok', span },
      { name: 'process slack', kind: 'consumer', attributes: { 'messaging.operation.type': 'process' } },
    ],
    [
      { kind: 'delivery', channel: 'slack', direction: 'outbound', number: 1, outcome: 'error', span },
      { name: 'send slack', kind: 'producer', isError: true, attributes: { 'messaging.operation.type': 'send' } },
    ],
    [
      { kind: 'sop_run', sop: 'deploy', outcome: 'failed', span },
      { name: 'sop_run deploy', isError: true, attributes: { 'sluice.sop': 'deploy' } },
    ],
    [
      { kind: 'sop_step', sop: 'deploy', step: 2, outcome: 'completed', span },
      { name: 'sop_step deploy 2', isError: false, attributes: { 'sluice.step': 2, 'sluice.outcome': 'completed' } },
    ],
  ]
  test('describes each kind of observation', async () => {
    const spans = await exported(...KINDS.map(([observation]) => observation))
    for (const [at, [, expected]] of KINDS.entries()) expect(spans[at]).toMatchObject(expected)
  })

  test('sends no observation without a span', async () => {
    const spans = await exported({ kind: 'tool_call', tool: 'shell', outcome: 'ok', span })
    expect(spans).toHaveLength(1)
    const { url, bodies } = await receiver()
    const { observer, close } = build(testHost(), { otel_endpoint: url })
    const others: Observation[] = [
      { kind: 'rate_limited', route: '/x' },
      { kind: 'commit', units: 1, tookMs: 1 },
      { kind: 'error', component: 'x' },
      { kind: 'sop_run', sop: 'deploy', outcome: 'skipped' },
      { kind: 'ingress', channel: 'x', verdict: 'kept', signed: true },
    ]
    for (const observation of others) observer.record(observation)
    await close?.()
    expect(bodies).toEqual([])
  })

  test('exports spans with invalid times', async () => {
    const odd = [Number.NaN, -1, Number.POSITIVE_INFINITY, 1e300]
    const spans = await exported(
      ...odd.map((ms): Observation => ({ kind: 'tool_call', tool: 't', outcome: 'ok', span: { trace: TRACE, startMs: ms, tookMs: ms } })),
    )
    expect(spans).toHaveLength(odd.length)
  })
})

describe('observability-otel section', () => {
  const parse = (config: object) => v.safeParse(feature.section?.schema ?? v.object({}), config)

  test('has the defaults of the specification', () => {
    expect(parse({}).output).toEqual({ otel_endpoint: 'http://localhost:4318', otel_service_name: 'sluice' })
  })

  test.each(['localhost:4318', 'ftp://x', 'http://user:secret@x', ''])('refuses the endpoint %j', (otel_endpoint) => {
    expect(parse({ otel_endpoint }).success).toBe(false)
  })
})
