import type { SopEvent, Sops } from '@sluice/sdk'
import { testHost } from '@sluice/testkit/host'
import { describe, expect, test } from 'vitest'
import { createSignals, listenToTriggers, SIGNALS_BURST_MAX, SIGNALS_PER_SEC_MAX } from './signals.ts'

function arrange({ fire = async () => [] as never[] }: { fire?: () => Promise<never[]> } = {}) {
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

/** Waits until fired events have been handled. */
const settle = () => new Promise((resolve) => setImmediate(resolve))

describe('createSignals', () => {
  test('fires the event of a peripheral trigger, with the value as JSON', () => {
    const { events, signal, host } = arrange()
    signal('temp', { celsius: 21 })
    signal('button', null)
    expect(events).toEqual([
      { source: 'peripheral', topic: 'board_b0/temp', payload: '{"celsius":21}', by: 'board:board_b0', atMs: host.clock.nowMs() },
      expect.objectContaining({ topic: 'board_b0/button', payload: null }),
    ])
  })

  test('ignores a signal that no procedure waits for, and one without an engine', () => {
    const { events, host } = arrange()
    createSignals(host, 'board_a0')('temp', 1)
    createSignals(testHost(), 'board_b0')('temp', 1)
    expect(events).toEqual([])
  })

  test('limits the signals of a board, and logs the dropped ones once', async () => {
    const { events, signal, host } = arrange()
    for (let round = 0; round < 50; round++) {
      for (let count = 0; count < 100; count++) signal('temp', count)
      await settle()
    }
    expect(events.length).toBeLessThanOrEqual(SIGNALS_BURST_MAX)
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

  test('is not delayed by an engine that is slow or fails', async () => {
    const { events, signal } = arrange({ fire: () => new Promise(() => {}) })
    for (let count = 0; count < 100; count++) signal('temp', count)
    expect(events.length).toBeLessThanOrEqual(SIGNALS_BURST_MAX)
    const failing = arrange({ fire: async () => Promise.reject(new Error('full')) })
    failing.signal('temp', 1)
    await settle()
    expect(failing.host.logs.map(({ level }) => level)).toEqual(['warn'])
  })
})

describe('listenToTriggers', () => {
  test('listens to the signals of loaded triggers once the engine is ready', async () => {
    let topics = ['board_b0/temp', 'board_b0/button', 'board_c0/x']
    let reload: (() => void) | undefined
    const services: { sops?: Sops } = {}
    const host = testHost({ services })
    const wanted: string[][] = []
    const registry = {
      listenTo: (signals: ReadonlyMap<string, ReadonlySet<string>>) =>
        void wanted.push([...signals].map(([alias, names]) => `${alias}: ${[...names]}`)),
    }
    const leaving = new AbortController()
    const listening = listenToTriggers(host, registry, leaving.signal)
    await host.advance(1000)
    expect(wanted).toEqual([])
    services.sops = {
      topics: () => topics,
      onReload: (callback: () => void) => {
        reload = callback
        return () => {
          reload = undefined
        }
      },
    } as unknown as Sops
    await host.advance(1000)
    await listening
    topics = []
    reload?.()
    expect(wanted).toEqual([['board_b0: temp,button', 'board_c0: x'], []])
    leaving.abort()
    expect(reload).toBeUndefined()
  })
})
