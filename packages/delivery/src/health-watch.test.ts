import type { Channel, ChannelHealth } from '@sluice/sdk'
import { testHost } from '@sluice/testkit/host'
import { expect, test } from 'vitest'
import { createHealthWatch } from './health-watch.ts'

test('a channel that goes down is told of once, and again when the reason changes or it is back', () => {
  const host = testHost()
  const look = createHealthWatch(host)
  const seen = (health: ChannelHealth | undefined) => {
    look([{ name: 'x', ...(health && { health: () => health }) } as Channel])
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
    ['warn', 'a channel is down'],
    ['warn', 'a channel is down'],
    ['info', 'a channel is back'],
  ])
})

test('a channel that was taken away is forgotten', () => {
  const host = testHost()
  const look = createHealthWatch(host)
  const down = { name: 'x', health: () => ({ state: 'down' }) } as Channel
  look([down])
  look([])
  look([down])
  expect(host.emitted).toHaveLength(2)
})
