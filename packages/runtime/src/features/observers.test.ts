import type { Observation, Observer } from '@sluice/sdk'
import { expect, test } from 'vitest'
import { createLogger } from '../log/log.ts'
import { logDelivery } from '../log/log-activity.ts'
import { chooseObservers, notifyObservers } from './observers.ts'

const span = { trace: { traceId: 'a'.repeat(32), spanId: 'b'.repeat(16), parentId: null }, startMs: 0, tookMs: 12.3 }
const delivery: Observation = { kind: 'delivery', channel: 'slack', direction: 'outbound', number: 7, outcome: 'ok', span }

function logOf() {
  const lines: Record<string, unknown>[] = []
  const stream = { write: (line: string) => lines.push(JSON.parse(line)) }
  return { lines, log: createLogger({ level: 'info', format: 'json', stream, clock: { nowMs: () => 0 } }) }
}

test('hands an observation to each chosen backend', () => {
  const seen: string[] = []
  const observer = (name: string): Observer => ({ name, record: ({ kind }) => void seen.push(`${name} ${kind}`) })
  const { log, lines } = logOf()
  const chosen = chooseObservers(['log', 'textmetrics'], [observer('textmetrics'), observer('otel')], log)
  notifyObservers(chosen, log)(delivery)
  expect(seen).toEqual(['textmetrics delivery'])
  expect(lines).toMatchObject([{ message: 'delivery', channel: 'slack' }])
})

test('logs a delivery as one line with its number, outcome and duration', () => {
  const { log, lines } = logOf()
  logDelivery(log, delivery)
  logDelivery(log, { kind: 'rate_limited', route: '/webhook' })
  expect(lines).toEqual([
    {
      time: '1970-01-01T00:00:00.000Z',
      level: 'info',
      message: 'Delivery finished',
      direction: 'outbound',
      channel: 'slack',
      number: 7,
      outcome: 'ok',
      took_ms: 12,
      trace_id: 'a'.repeat(32),
    },
  ])
})
