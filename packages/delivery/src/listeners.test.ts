import type { Channel, ListenContext } from '@sluice/sdk'
import { testHost } from '@sluice/testkit/host'
import { expect, test } from 'vitest'
import { Listeners } from './listeners.ts'
import { type HeldOnce, heldOnce } from './testing/held-once.ts'

/** A channel that listens until it is stopped, and the contexts that it got. */
function listening(held: HeldOnce) {
  const host = testHost()
  const contexts: ListenContext[] = []
  let flushes = 0
  const channel: Channel = {
    name: 'x',
    allow: [],
    limits: { text: 1, unit: 'utf16' },
    send: async () => ({ id: '1' }),
    notifications: { target: 'x', opensThreads: false, account: 'bot 1', key: 'x.to' },
    cursors: {
      load: async () => undefined,
      flush: async () => {
        flushes += 1
      },
    },
    async listen(_deliver, context) {
      contexts.push(context)
      await host.clock.sleep(1_000_000_000, context.signal)
    },
  }
  const listeners = new Listeners({ ...host, ownership: held.ownership, deliver: () => async () => undefined })
  listeners.set([channel])
  return { host, listeners, contexts, channel, flushes: () => flushes }
}

test('a channel listens only while this process holds the lease of its account', async () => {
  const granted = Promise.withResolvers<void>()
  const held = heldOnce(granted.promise)
  const { host, contexts } = listening(held)
  await host.advance(10_000)
  expect([held.asked, contexts.length]).toEqual([['channel/x/bot%201'], 0])
  granted.resolve()
  await host.advance(0)
  expect(contexts.map(({ lease }) => lease?.name)).toEqual(['channel/x/bot%201'])
  held.lose()
  await host.advance(3_600_000)
  expect([contexts.length, contexts[0]?.signal.aborted]).toEqual([1, true])
})

test('positions are not stored after the lease is lost', async () => {
  const held = heldOnce()
  const { host, flushes } = listening(held)
  await host.advance(5000)
  expect(flushes()).toBe(1)
  held.lose()
  await host.advance(60_000)
  expect(flushes()).toBe(1)
})

test('a removed channel stops listening, and the others go on', async () => {
  const { host, listeners, contexts, channel } = listening(heldOnce())
  await host.advance(0)
  const other = { ...channel }
  listeners.set([channel, other])
  await host.advance(0)
  listeners.set([other])
  expect(contexts.map(({ signal }) => signal.aborted)).toEqual([true, false])
  await listeners.stop()
  expect(contexts.map(({ signal }) => signal.aborted)).toEqual([true, true])
})

test('stopping waits for the work of a channel that was removed before', async () => {
  const { host, listeners, channel } = listening(heldOnce())
  const stored = Promise.withResolvers<void>()
  const slow: Channel = { ...channel, listen: () => stored.promise }
  listeners.set([slow])
  await host.advance(0)
  listeners.set([])
  let isStopped = false
  const stopping = listeners.stop().then(() => {
    isStopped = true
  })
  await host.advance(0)
  expect(isStopped).toBe(false)
  stored.resolve()
  await stopping
})

test('a rebuilt channel begins after its predecessor has stored its positions', async () => {
  const { host, listeners, contexts, channel, flushes } = listening(heldOnce())
  const stored = Promise.withResolvers<void>()
  await host.advance(0)
  const slow: Channel = { ...channel, listen: () => stored.promise }
  listeners.set([slow])
  await host.advance(0)
  const flushed = flushes()
  listeners.set([{ ...channel }])
  await host.advance(1000)
  expect(contexts).toHaveLength(1)
  stored.resolve()
  await host.advance(0)
  expect([contexts.length, flushes()]).toEqual([2, flushed + 1])
  await listeners.stop()
})

test('a rebuilt channel begins although its predecessor never ends', async () => {
  const { host, listeners, contexts, channel } = listening(heldOnce())
  await host.advance(0)
  listeners.set([{ ...channel, listen: () => new Promise(() => undefined) }])
  await host.advance(0)
  listeners.set([{ ...channel }])
  await host.advance(5000)
  expect(contexts).toHaveLength(2)
})
