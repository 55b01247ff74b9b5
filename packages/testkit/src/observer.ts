/** The conformance suite of observers: `observerConformance` for a feature's observer, `observerRules` for any other. */
import { type Feature, type Host, type Observation, type Observer, rowOf, type Trace } from '@sluice/sdk'
import fc from 'fast-check'
import * as v from 'valibot'
import { describe, expect, it } from 'vitest'
import { testHost, throwingHost } from './host.ts'
import { parseTextMetrics } from './text-metrics.ts'

/** A feature with one observer. */
export interface ObserverUnderTest {
  readonly feature: Feature
  /** The values of the feature's section; default: none. */
  readonly config?: object
}

/** Registers the tests of a feature's observer. */
export function observerConformance({ feature, config = {} }: ObserverUnderTest): void {
  const build = (host: Host) => feature.build(host, feature.section ? v.parse(feature.section.schema, config) : config)

  describe(`observer conformance: ${feature.id}`, () => {
    it('the name equals the backend of the catalogue row', () => {
      expect(build(testHost()).observers?.map(({ name }) => name)).toEqual([rowOf(feature.id)?.backend])
    })

    it('build does no I/O', () => {
      build(throwingHost())
    })

    it('close may be called twice', async () => {
      const parts = build(testHost())
      await parts.close?.()
      await parts.close?.()
    })

    observerRules(() => {
      const [observer] = build(testHost()).observers ?? []
      if (!observer) throw new Error(`${feature.id} builds no observer`)
      return observer
    })
  })
}

const STORM = 20_000

/** Registers the rules of an observer; `create` returns a new observer for each rule. */
export function observerRules(create: () => Observer): void {
  it('record never throws for any observation', () => {
    const observer = create()
    fc.assert(fc.property(anyObservation, (observation) => observer.record(observation)))
  })

  it('renders well-formed text before, during and after recording', async () => {
    const observer = create()
    if (!observer.render) return
    await rendered(observer)
    for (const observation of fc.sample(anyObservation, { numRuns: 500, seed: 1 })) observer.record(observation)
    await Promise.all([rendered(observer), rendered(observer)])
    await rendered(observer)
  })

  it('the output stays bounded when names never repeat', async () => {
    const observer = create()
    const storm = async (round: number) => {
      for (let index = 0; index < STORM; index++) observer.record(request(`/made-up/${round}/${index}`))
      return (await observer.render?.())?.body.split('\n').length ?? 0
    }
    await storm(0)
    const lines = await storm(1)
    expect(await storm(2)).toBe(lines)
    expect(lines).toBeLessThan(STORM * 2)
  })
}

async function rendered(observer: Observer): Promise<void> {
  const answer = await observer.render?.()
  expect(answer?.contentType).toBe('text/plain; version=0.0.4; charset=utf-8')
  parseTextMetrics(answer?.body ?? '')
}

const trace: Trace = { traceId: 'a'.repeat(32), spanId: 'b'.repeat(16), parentId: null }
const request = (route: string): Observation => ({
  kind: 'request',
  method: 'POST',
  route,
  status: 200,
  span: { trace, startMs: 0, tookMs: 1 },
})

const text = fc.string({ unit: 'binary', maxLength: 20 })
const amount = fc.oneof(fc.double(), fc.integer(), fc.constantFrom(0, 1, 250))
const outcome = fc.constantFrom('ok' as const, 'error' as const, 'aborted' as const)
const span = fc.record({ trace: fc.constant(trace), startMs: amount, tookMs: amount })
const anyObservation: fc.Arbitrary<Observation> = fc.oneof(
  fc.record({ kind: fc.constant('request' as const), method: text, route: text, status: amount, span }),
  fc.record({ kind: fc.constant('rate_limited' as const), route: text }),
  fc.record({ kind: fc.constant('turn' as const), source: text, provider: text, model: text, outcome, iterations: amount, span }),
  fc.record({
    kind: fc.constant('model_call' as const),
    provider: text,
    model: text,
    outcome,
    inputTokens: amount,
    outputTokens: amount,
    costUsd: amount,
    span,
  }),
  fc.record({ kind: fc.constant('tool_call' as const), tool: text, outcome, span }),
  fc.record({
    kind: fc.constant('delivery' as const),
    channel: text,
    number: fc.nat(),
    direction: fc.constantFrom('inbound' as const, 'outbound' as const),
    outcome,
    span,
  }),
  fc.record({ kind: fc.constant('commit' as const), units: amount, tookMs: amount }),
  fc.record({ kind: fc.constant('error' as const), component: text }),
)
