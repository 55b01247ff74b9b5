import type { Channel } from '@sluice/sdk'
import { testHost } from '@sluice/testkit/host'
import { expect, test } from 'vitest'
import { Listeners } from '../listeners.ts'
import { heldOnce } from '../testing/held-once.ts'
import { healthOf, observeSent } from './channel-health.ts'

const channel = (members: Partial<Channel>): Channel => ({
  name: 'x',
  allow: [],
  limits: { text: 1, unit: 'utf16' },
  send: async () => ({ id: '1' }),
  ...members,
})

test('a channel that reports no health and does not listen is ok', () => {
  expect(healthOf(channel({}))).toEqual({ state: 'ok' })
  expect(healthOf(channel({ listen: async () => undefined }))).toEqual({ state: 'connecting' })
})

test('the health has the time of the last sent message', () => {
  const one = channel({ health: () => ({ state: 'down', detail: 'blocked' }) })
  observeSent(one, 7)
  expect(healthOf(one)).toEqual({ state: 'down', detail: 'blocked', lastSentAtMs: 7 })
})

test('a channel that listens has the health of its listener, and its gaps are events', async () => {
  const host = testHost()
  const listening = channel({
    async listen(_deliver, { signal, report }) {
      report.connected()
      report.event()
      report.gap({ sinceMs: 0, why: 'the history has expired' })
      await host.clock.sleep(1_000_000_000, signal)
    },
  })
  const listeners = new Listeners({ ...host, ownership: heldOnce().ownership, deliver: () => async () => undefined })
  listeners.set([listening])
  await host.advance(0)
  expect(healthOf(listening)).toEqual({ state: 'ok', lastEventAtMs: host.clock.nowMs() })
  expect(host.emitted).toEqual([{ type: 'channel_gap', channel: 'x', since: '1970-01-01T00:00:00.000Z', why: 'the history has expired' }])
  await listeners.stop()
})
