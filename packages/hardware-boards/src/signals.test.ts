import type { SopEvent, Sops } from '@sluice/sdk'
import { testHost } from '@sluice/testkit/host'
import { expect, test } from 'vitest'
import { createSignals, SIGNALS_AT_ONCE_MAX, SIGNALS_PER_SEC_MAX } from './signals.ts'

function heard({ fire = async () => [] as never[] }: { fire?: () => Promise<never[]> } = {}) {
  const events: SopEvent[] = []
  const sops: Partial<Sops> = {
    matches: (source, topic) => source === 'peripheral' && topic.startsWith('board_b0/'),
    fire: async (event) => {
      events.push(event)
      return fire()
    },
  }
  const host = testHost({ services: { sops: sops as Sops } })
  return { events, host, signal: createSignals(host, 'board_b0') }
}

/** Lets what was fired come to its end. */
const settle = () => new Promise((resolve) => setImmediate(resolve))

test('a signal is the event of a peripheral trigger, with its value as JSON', () => {
  const { events, signal, host } = heard()
  signal('temp', { celsius: 21 })
  signal('button', null)
  expect(events).toEqual([
    { source: 'peripheral', topic: 'board_b0/temp', payload: '{"celsius":21}', by: 'board:board_b0', atMs: host.clock.nowMs() },
    expect.objectContaining({ topic: 'board_b0/button', payload: null }),
  ])
})

test('a signal nobody waits for, and one without an engine, is nothing', () => {
  const { events, host } = heard()
  createSignals(host, 'board_a0')('temp', 1)
  createSignals(testHost(), 'board_b0')('temp', 1)
  expect(events).toEqual([])
})

test('a board that stutters is heard a bounded number of times, and the rest is told once', async () => {
  const { events, signal, host } = heard()
  for (let round = 0; round < 50; round++) {
    for (let count = 0; count < 100; count++) signal('temp', count)
    await settle()
  }
  expect(events.length).toBeLessThanOrEqual(SIGNALS_AT_ONCE_MAX)
  const before = events.length
  await host.advance(1000)
  for (let count = 0; count < 100; count++) {
    signal('temp', count)
    await settle()
  }
  expect(events.length - before).toBeGreaterThan(0)
  expect(events.length - before).toBeLessThanOrEqual(SIGNALS_PER_SEC_MAX + 1)
  expect(host.logs.filter(({ level }) => level === 'warn')).toHaveLength(1)
})

test('an engine that is slow, or fails, holds nothing up', async () => {
  const { events, signal } = heard({ fire: () => new Promise(() => {}) })
  for (let count = 0; count < 100; count++) signal('temp', count)
  expect(events.length).toBeLessThanOrEqual(SIGNALS_AT_ONCE_MAX)
  const failing = heard({ fire: async () => Promise.reject(new Error('full')) })
  failing.signal('temp', 1)
  await settle()
  expect(failing.host.logs.map(({ level }) => level)).toEqual(['warn'])
})
