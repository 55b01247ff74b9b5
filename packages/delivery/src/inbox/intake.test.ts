import { AppError, type Channel } from '@sluice/sdk'
import { describe, expect, test } from 'vitest'
import { healthOf } from '../outbox/channel-health.ts'
import { bench, clock, message, settle, setUpDeliveries, until } from '../testing/delivery-bench.ts'

setUpDeliveries()

describe('a message', () => {
  test('runs one turn under 100 concurrent copies, and none when it is repeated', async () => {
    const made = await bench()
    const receptions = await Promise.all(Array.from({ length: 100 }, () => made.receive(message('m1'))))
    expect(receptions.reduce((sum, { kept }) => sum + kept, 0)).toBe(1)
    await settle()
    expect(await made.receive(message('m1'))).toEqual({ kept: 0, duplicate: 1, denied: 0 })
    await settle()
    expect(made.turns).toHaveLength(1)
  })

  test('is the last one that its channel had, also on a channel without a connection', async () => {
    const made = await bench()
    expect(healthOf(made.channel).lastEventAtMs).toBeUndefined()
    await made.receive(message('m1'))
    expect(healthOf(made.channel).lastEventAtMs).toBe(clock.nowMs())
    await settle()
  })

  describe('on a path that has triggers', () => {
    const webhook: NonNullable<Channel['webhook']> = {
      path: '/x',
      verify: () => ({ by: 'test' }),
      parse: () => [],
      sample: () => ({ headers: {}, body: '' }),
    }
    /** Receives a message behind another one that holds the lane; `triggers` has the paths with triggers when it arrives. */
    const waiting = async (triggers: string[]) => {
      const gate = Promise.withResolvers<string>()
      const made = await bench({ triggers, channel: { webhook }, turn: () => gate.promise })
      const [path, ...others] = triggers.splice(0)
      await made.receive(message('m0'))
      await settle()
      if (path !== undefined) triggers.push(path, ...others)
      await made.receive(message('m1'))
      const finish = async () => {
        gate.resolve('done')
        await settle()
      }
      return { ...made, finish }
    }

    test('starts procedures instead of a turn', async () => {
      const { turns, finish, ownership } = await waiting(['/x'])
      expect((await ownership.of(0)?.inbox.waiting({ after: 0, limit: 9 }))?.map(({ kind }) => kind)).toEqual(['turn', 'procedure_event'])
      await finish()
      expect(turns.map(({ text }) => text)).toEqual(['text of m0'])
    })

    test('is a turn if the procedure was removed before its turn starts', async () => {
      const triggers = ['/x']
      const { turns, finish } = await waiting(triggers)
      triggers.pop()
      await finish()
      expect(turns.map(({ text }) => text)).toEqual(['text of m0', 'text of m1'])
    })

    test('stays a turn if the procedure is loaded after the message arrived', async () => {
      const triggers: string[] = []
      const { turns, finish, store, deliveries } = await waiting(triggers)
      triggers.push('/x')
      await finish()
      expect(turns.map(({ text }) => text)).toEqual(['text of m0', 'text of m1'])
      // A replay classifies the message again.
      await store.inbox.replay(2)
      deliveries.wake()
      await settle()
      expect(turns).toHaveLength(2)
      expect(await store.inbox.get(2)).toMatchObject({ state: 'done' })
    })
  })

  test('is a duplicate after a restart too', async () => {
    const first = await bench()
    await first.receive(message('m1'))
    await settle()
    await first.deliveries.stop(0)
    await first.store.close()
    const second = await bench()
    expect(await second.receive(message('m1'))).toMatchObject({ kept: 0, duplicate: 1 })
    await settle()
    expect(second.turns).toEqual([])
  })

  test('with the same id on another account is another message', async () => {
    const made = await bench()
    await made.receive(message('m1'), message('m1', { account: 'other' }))
    await settle()
    expect(made.turns).toHaveLength(2)
  })

  test('over max_pending is refused with Retry-After, for its account only', async () => {
    const gate = Promise.withResolvers<void>()
    const made = await bench({
      config: { max_pending: 2 },
      async turn({ text }) {
        await gate.promise
        return text
      },
    })
    await made.receive(message('m1'))
    await expect(made.receive(message('m2'), message('m3'))).rejects.toMatchObject({ code: 'unavailable', retryAfterSecs: 30 })
    expect(await made.store.inbox.list({ limit: 10 })).toHaveLength(1)
    await made.receive(message('m2'))
    await expect(made.receive(message('m3'))).rejects.toMatchObject({ code: 'unavailable' })
    expect(await made.receive(message('m3', { account: 'other' }))).toMatchObject({ kept: 1 })
    expect(await made.receive(message('m1'), message('m2'))).toEqual({ kept: 0, duplicate: 2, denied: 0 })
    gate.resolve()
    await settle()
    expect(await made.receive(message('m3'))).toMatchObject({ kept: 1 })
  })

  test('is refused when turns of its account have waited longer than max_queue_secs', async () => {
    const gate = Promise.withResolvers<void>()
    const made = await bench({
      config: { max_queue_secs: 60 },
      turnsMax: 1,
      async turn({ text }) {
        await gate.promise
        return text
      },
    })
    await made.receive(message('runs'), message('ready', { sender: 's2' }), message('behind'))
    await settle()
    await clock.advance(60_000)
    expect(await made.receive(message('m1', { sender: 's3' }))).toMatchObject({ kept: 1 })
    await clock.advance(1)
    expect(made.deliveries.ages()).toEqual({ messageSecs: 60.001, replySecs: 0 })
    await expect(made.receive(message('m2'))).rejects.toMatchObject({ code: 'unavailable', retryAfterSecs: 30 })
    expect(await made.receive(message('ready', { sender: 's2' }))).toMatchObject({ duplicate: 1 })
    expect(await made.receive(message('m2', { account: 'other' }))).toMatchObject({ kept: 1 })
    gate.resolve()
    await until(() => made.turns.length === 5)
    expect(await made.receive(message('m2'))).toMatchObject({ kept: 1 })
  })

  test('is not refused because its session or replies of its account wait', async () => {
    const gate = Promise.withResolvers<void>()
    const made = await bench({
      config: { max_queue_secs: 60 },
      async turn({ text }) {
        if (text === 'text of slow') await gate.promise
        return text
      },
      async send() {
        throw new AppError('unavailable', 'nobody there')
      },
    })
    await made.receive(message('slow'), message('behind'), message('answered', { sender: 's2' }))
    await until(() => made.deliveries.load().replies === 1)
    await clock.advance(90_000)
    expect(made.deliveries.ages()).toEqual({ messageSecs: 90, replySecs: 90 })
    expect(await made.receive(message('m1'))).toMatchObject({ kept: 1 })
    gate.resolve()
    await until(() => made.turns.length === 4)
  })

  test('of a request with more messages than max_pending is kept when none waits', async () => {
    const made = await bench({ config: { max_pending: 2 } })
    expect(await made.receive(message('m1'), message('m2'), message('m3'))).toMatchObject({ kept: 3 })
  })

  test('from a sender that is not allowed is dropped without an answer', async () => {
    const made = await bench({ channel: { allow: ['+1 555 000 2222'], normalise: (entry) => entry.replaceAll(' ', '') } })
    expect(await made.receive(message('s1', { sender: '+1999' }), message('m1'))).toEqual({ kept: 1, duplicate: 0, denied: 1 })
    await settle()
    expect(made.sent.map(({ text }) => text)).toEqual(['re: text of m1'])
    expect(await made.store.inbox.list({ limit: 10 })).toHaveLength(1)
  })

  test('with half a surrogate pair is kept once', async () => {
    const made = await bench()
    const odd = message('m\ud800', { text: 'a\udc00b', sender: '\ud800' })
    expect(await made.receive(odd)).toMatchObject({ kept: 1 })
    expect(await made.receive(odd)).toMatchObject({ duplicate: 1 })
    await settle()
    expect(made.turns).toMatchObject([{ text: 'a\ufffdb' }])
  })
})
