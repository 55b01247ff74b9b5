import type { SopRun } from '@sluice/sdk'
import { describe, expect, test } from 'vitest'
import { runTrace, stepTrace } from './run-identity.ts'

const [traceId, spanId] = ['4bf92f3577b34da6a3ce929d0e0e4736', '00f067aa0ba902b7']
const event = { source: 'webhook', topic: '/x', payload: null, atMs: 1, by: 'local' } as const
const run = (id: string, trace?: string): Pick<SopRun, 'id' | 'event'> => ({
  id,
  event: { ...event, ...(trace !== undefined && { trace }) },
})

describe('the spans of a run', () => {
  test('are children of the event span, with the steps below the run', () => {
    const traced = run('r1', `00-${traceId}-${spanId}-01 v=1`)
    expect(runTrace(traced)).toMatchObject({ traceId, parentId: spanId, state: 'v=1' })
    expect(stepTrace(traced, 1)).toMatchObject({ traceId, parentId: runTrace(traced).spanId, state: 'v=1' })
  })

  test.each([undefined, '', 'not a trace'])('start a trace when the event has none: %j', (trace) => {
    const alone = runTrace(run('r1', trace))
    expect(alone).toEqual({
      traceId: expect.stringMatching(/^[0-9a-f]{32}$/),
      spanId: expect.stringMatching(/^[0-9a-f]{16}$/),
      parentId: null,
    })
    expect(stepTrace(run('r1', trace), 2)).toMatchObject({ traceId: alone.traceId, parentId: alone.spanId })
  })

  test('are stable and unique', () => {
    const spans = ['r1', 'r2'].flatMap((id) => [runTrace(run(id)), ...[1, 2, 11].map((step) => stepTrace(run(id), step))])
    expect(new Set(spans.map((trace) => trace.spanId)).size).toBe(spans.length)
    expect(new Set(spans.map((trace) => trace.traceId)).size).toBe(2)
    expect(runTrace(run('r1'))).toEqual(runTrace(run('r1')))
  })
})
