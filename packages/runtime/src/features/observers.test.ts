import type { Observation, Observer } from '@sluice/sdk'
import { expect, test } from 'vitest'
import { createLogger } from '../log/log.ts'
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
