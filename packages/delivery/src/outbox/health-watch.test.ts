import type { Channel, ChannelHealth } from '@sluice/sdk'
import { testHost } from '@sluice/testkit/host'
import { expect, test } from 'vitest'
import { HealthWatch } from './health-watch.ts'

test('HealthWatch reports once that a channel is down, why, and that it is back', () => {
  const host = testHost()
  const watch = new HealthWatch(host)
  const seen = (health: ChannelHealth | undefined) => {
    watch.look([{ name: 'x', ...(health && { health: () => health }) } as Channel])
    return host.emitted.length
  }
  expect(seen(undefined)).toBe(0)
  expect(seen({ state: 'ok' })).toBe(0)
  expect(seen({ state: 'down', detail: 'the token is refused' })).toBe(1)
  expect(seen({ state: 'down', detail: 'the token is refused' })).toBe(1)
  expect(seen({ state: 'connecting' })).toBe(1)
  expect(seen({ state: 'down', detail: 'another reason' })).toBe(2)
  expect(seen({ state: 'ok' })).toBe(3)
  expect(host.emitted.at(-1)).toEqual({ type: 'channel_health', channel: 'x', state: 'ok', detail: null })
  expect(host.logs.map(({ level, message }) => [level, message])).toEqual([
    ['warn', 'channel down'],
    ['warn', 'channel down'],
    ['info', 'channel back'],
  ])
})

test('HealthWatch reports a channel whose replies are of unknown outcome, and its end', () => {
  const host = testHost()
  const watch = new HealthWatch(host)
  for (const state of ['degraded', 'degraded', 'ok'] as const) watch.look([{ name: 'x', health: () => ({ state }) } as Channel])
  expect(host.emitted.map((event) => (event as { state?: string }).state)).toEqual(['degraded', 'ok'])
  expect(host.logs.map(({ message }) => message)).toEqual(['channel degraded', 'channel back'])
})

test('HealthWatch forgets a channel that was removed, which is no longer down', () => {
  const host = testHost()
  const watch = new HealthWatch(host)
  const down = { name: 'x', health: () => ({ state: 'down' }) } as Channel
  watch.look([down])
  watch.look([])
  watch.look([down])
  expect(host.emitted.map((event) => (event as { state?: string }).state)).toEqual(['down', 'ok', 'down'])
})
