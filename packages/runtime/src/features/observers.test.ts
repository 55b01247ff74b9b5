import type { Observation, Observer } from '@sluice/sdk'
import { testClock } from '@sluice/testkit/clock'
import { expect, test } from 'vitest'
import { createLogger } from '../log/log.ts'
import { chooseObservers, notifyObservers } from './observers.ts'

const span = { trace: { traceId: 'a'.repeat(32), spanId: 'b'.repeat(16), parentId: null }, startMs: 0, tookMs: 12.3 }
const delivery: Observation = { kind: 'delivery', channel: 'slack', direction: 'outbound', number: 7, outcome: 'ok', span }

function logOf() {
  const lines: Record<string, unknown>[] = []
  const stream = { write: (line: string) => lines.push(JSON.parse(line)) }
  return { lines, log: createLogger({ level: 'info', format: 'json', stream, clock: testClock() }) }
}

test('hands an observation to each chosen backend', () => {
  const seen: string[] = []
  const observer = (name: string): Observer => ({ name, record: ({ kind }) => void seen.push(`${name} ${kind}`) })
  const { log, lines } = logOf()
  const chosen = chooseObservers(['log', 'textmetrics'], [observer('textmetrics'), observer('otel')], log)
  notifyObservers(chosen, log)(delivery)
  expect(seen).toEqual(['textmetrics delivery'])
  const [line] = lines
  expect(line).toMatchObject({
    level: 'info',
    component: 'observability',
    message: 'delivery',
    channel: 'slack',
    took_ms: 12.3,
    trace_id: 'a'.repeat(32),
    span_id: 'b'.repeat(16),
  })
  expect(line).not.toHaveProperty('span')
})

test('the backend "log" names fields like every other line', () => {
  const { log, lines } = logOf()
  const [observer] = chooseObservers(['log'], [], log)
  const model = { provider: 'openai', model: 'small', outcome: 'ok' } as const
  observer?.record({ kind: 'model_call', ...model, inputTokens: 12, outputTokens: 34, costUsd: 0.5, span })
  observer?.record({ kind: 'commit', units: 2, tookMs: 1.23456 })
  expect(lines).toMatchObject([
    { message: 'model_call', ...model, input_tokens: 12, output_tokens: 34, cost_usd: 0.5 },
    { message: 'commit', units: 2, took_ms: 1.235 },
  ])
})
