import type { Observation } from '@sluice/sdk'
import { testHost } from '@sluice/testkit/host'
import { expect, test } from 'vitest'
import { logDelivery } from './log-activity.ts'

const span = { trace: { traceId: 'a'.repeat(32), spanId: 'b'.repeat(16), parentId: null }, startMs: 0, tookMs: 12.3 }
const delivery: Observation = { kind: 'delivery', channel: 'slack', direction: 'outbound', number: 7, outcome: 'ok', span }

test('logDelivery logs one line with number, outcome and duration', () => {
  const { log, logs } = testHost()
  logDelivery(log, delivery)
  logDelivery(log, { kind: 'rate_limited', route: '/webhook' })
  expect(logs).toEqual([
    {
      level: 'info',
      message: 'delivery finished',
      fields: { direction: 'outbound', channel: 'slack', number: 7, outcome: 'ok', took_ms: 12, trace_id: 'a'.repeat(32) },
    },
  ])
})
