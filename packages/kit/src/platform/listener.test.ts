import { AppError, type ListenContext } from '@sluice/sdk'
import { testHost } from '@sluice/testkit/host'
import { afterEach, describe, expect, test } from 'vitest'
import { Listener, type ListenerOptions } from './listener.ts'

/** A platform whose connections a test opens and ends. */
interface Connection {
  readonly context: ListenContext
  /** Ends the connection: with an error, or because the platform asks for another one. */
  end(error?: Error): void
}

const stops: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const stop of stops.splice(0)) await stop()
})

function start(options: Partial<ListenerOptions> = {}) {
  const host = testHost()
  const connections: Connection[] = []
  const abort = new AbortController()
  const listener = new Listener({
    clock: host.clock,
    log: host.log,
    fields: { channel: 'test' },
    connect(context) {
      const { promise, resolve, reject } = Promise.withResolvers<void>()
      connections.push({ context, end: (error) => (error ? reject(error) : resolve()) })
      context.signal.addEventListener('abort', () => resolve(), { once: true })
      return promise
    },
    random: () => 0.5,
    ...options,
  })
  const ended = listener.run(abort.signal)
  const stop = async (): Promise<void> => {
    abort.abort()
    await ended
  }
  stops.push(stop)
  const last = (): Connection => {
    const connection = connections.at(-1)
    if (!connection) throw new Error('No connection was opened')
    return connection
  }
  const messages = (level: string) => host.logs.filter((line) => line.level === level).map(({ message }) => message)
  return { host, listener, connections, last, stop, messages }
}

describe('Listener', () => {
  test('opens the next connection after a delay', async () => {
    const { host, connections, last, listener } = start()
    await host.advance(0)
    last().context.report.connected()
    last().end(new Error('reset'))
    await host.advance(400)
    expect([connections.length, listener.retryAtMs]).toEqual([1, 500])
    await host.advance(100)
    expect([connections.length, listener.retryAtMs]).toEqual([2, undefined])
  })

  test('begins again with short delays after a connection that lasted a minute', async () => {
    const { host, connections, last } = start()
    for (let outage = 0; outage < 20; outage++) {
      await host.advance(0)
      last().end(new Error('refused'))
      await host.advance(600_000)
    }
    last().context.report.connected()
    await host.advance(60_000)
    const before = connections.length
    last().end(new Error('reset'))
    await host.advance(1000)
    expect(connections.length).toBe(before + 1)
  })

  test('reports a broken connection as connecting, and an outage as down with its reason', async () => {
    const { host, last, listener } = start()
    expect(listener.health).toEqual({ state: 'connecting' })
    await host.advance(0)
    last().context.report.connected()
    last().context.report.event()
    expect(listener.health).toEqual({ state: 'ok', lastEventAtMs: host.clock.nowMs() })
    last().end(new Error('reset'))
    await host.advance(0)
    expect(listener.health.state).toBe('connecting')
    await host.advance(1000)
    last().end(new Error('refused'))
    await host.advance(0)
    expect(listener.health).toMatchObject({ state: 'down', detail: 'refused' })
    await host.advance(5000)
    last().context.report.connected()
    expect(listener.health).toMatchObject({ state: 'ok' })
    expect(listener.health.detail).toBeUndefined()
  })

  test('reports connections that keep breaking as an outage', async () => {
    const { host, last, listener } = start()
    for (let times = 0; times < 3; times++) {
      await host.advance(0)
      last().context.report.connected()
      last().end(new Error('reset'))
      await host.advance(times < 2 ? 5000 : 0)
    }
    expect(listener.health).toMatchObject({ state: 'down', detail: 'reset' })
  })

  test('reports the problem of a connection that works in part', async () => {
    const { host, last, listener } = start()
    await host.advance(0)
    last().context.report.connected()
    last().context.report.problem('no pushes')
    expect(listener.health).toMatchObject({ state: 'down', detail: 'no pushes' })
    last().context.report.problem(undefined)
    expect(listener.health).toEqual({ state: 'ok' })
  })

  test('tries a refused connection rarely, and names the reason once as an error', async () => {
    const { host, connections, last, messages, listener } = start()
    const refused = new AppError('forbidden', 'the token is wrong')
    await host.advance(0)
    last().end(refused)
    await host.advance(600_000)
    expect([connections.length, listener.health.state]).toEqual([1, 'down'])
    await host.advance(300_000)
    last().end(refused)
    await host.advance(0)
    expect(connections).toHaveLength(2)
    expect([messages('error'), messages('debug')]).toEqual([['platform refused the connection'], ['connection failed again']])
  })

  test('waits as long as the platform asks, even when it should retry soon', async () => {
    const { host, connections, last } = start()
    await host.advance(0)
    last().end(new AppError('rate_limited', 'slow down', { retryAfterSecs: 100 }))
    await host.advance(99_000)
    last().context.retrySoon()
    await host.advance(900)
    expect(connections).toHaveLength(1)
    await host.advance(10_000)
    expect(connections).toHaveLength(2)
  })

  test('retries within a second when it should retry soon', async () => {
    const { host, connections, last } = start()
    for (let times = 0; times < 12; times++) {
      await host.advance(0)
      last().end(new Error('refused'))
      await host.advance(600_000)
    }
    last().end(new Error('refused'))
    await host.advance(1000)
    expect(connections).toHaveLength(13)
    last().context.retrySoon()
    await host.advance(0)
    expect(connections).toHaveLength(14)
  })

  test('opens a replacement before the old connection ends', async () => {
    const { host, connections, last, listener, stop } = start()
    await host.advance(0)
    const old = last()
    old.context.report.connected()
    await host.advance(60_000)
    let isReplaced = false
    void old.context.report.replace().then(() => {
      isReplaced = true
    })
    await host.advance(1000)
    expect([connections.length, isReplaced, listener.health.state]).toEqual([2, false, 'ok'])
    last().context.report.connected()
    await host.advance(0)
    expect(isReplaced).toBe(true)
    old.end()
    await host.advance(0)
    expect([connections.length, listener.health.state]).toEqual([2, 'ok'])
    void last().context.report.replace()
    last().end()
    await host.advance(0)
    expect(listener.health.state).toBe('connecting')
    await stop()
  })

  test('retries catching up across connections, one task at a time', async () => {
    const { host, last, messages } = start()
    const calls: string[] = []
    const task = (name: string, failures: number) => {
      let left = failures
      return async () => {
        calls.push(name)
        if (left-- > 0) throw new Error('not yet')
      }
    }
    await host.advance(0)
    let isDone = false
    void last()
      .context.catchUp(task('first', 1))
      .then(() => {
        isDone = true
      })
    await host.advance(0)
    last().end(new Error('reset'))
    await host.advance(0)
    expect([calls, isDone]).toEqual([['first'], false])
    await host.advance(1000)
    expect([calls, isDone]).toEqual([['first', 'first'], true])
    const held = Promise.withResolvers<void>()
    void last().context.catchUp(async () => held.promise)
    void last().context.catchUp(task('dropped', 0))
    void last().context.catchUp(task('newest', 0))
    held.resolve()
    await host.advance(0)
    expect(calls).toEqual(['first', 'first', 'newest'])
    expect(messages('warn')).toContain('missed messages not read, trying again')
  })

  test('reports messages that may be missing', async () => {
    const gaps: unknown[] = []
    const { host, last, messages } = start({ onGap: (gap) => gaps.push(gap) })
    await host.advance(0)
    last().context.report.gap({ sinceMs: 0, why: 'the history has expired' })
    expect([gaps, messages('warn')]).toEqual([[{ sinceMs: 0, why: 'the history has expired' }], ['messages may be missing']])
  })

  test('loads the positions before it connects, and stores them every few seconds and at the end', async () => {
    const happened: string[] = []
    let isFull = true
    const cursors = {
      async load() {
        happened.push('load')
        if (isFull) throw new AppError('unavailable', 'the disk is full')
      },
      flush: async () => void happened.push('flush'),
    }
    const { host, connections, stop } = start({ cursors })
    await host.advance(0)
    expect(connections).toHaveLength(0)
    isFull = false
    await host.advance(1000)
    expect([connections.length, happened]).toEqual([1, ['load', 'load']])
    await host.advance(4000)
    expect(happened.at(-1)).toBe('flush')
    await stop()
    expect(happened).toEqual(['load', 'load', 'flush', 'flush'])
  })

  test('ends soon after an abort, also during a delay', async () => {
    const { host, last, stop, connections } = start()
    await host.advance(0)
    last().end(new Error('reset'))
    await host.advance(0)
    await stop()
    expect(connections).toHaveLength(1)
  })
})
