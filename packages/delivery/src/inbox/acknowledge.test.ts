import { AppError, type Channel, type Inbound } from '@sluice/sdk'
import { describe, expect, test } from 'vitest'
import {
  advanceUntil,
  bench,
  clock,
  type DeliveryBench,
  type DeliveryBenchOptions,
  host,
  message,
  settle,
  setUpDeliveries,
  states,
} from '../testing/delivery-bench.ts'

setUpDeliveries()

const WEBHOOK: NonNullable<Channel['webhook']> = {
  path: '/x',
  verify: () => ({ by: 'test' }),
  parse: () => [],
  sample: () => ({ headers: {}, body: '' }),
}

const acknowledging = async (
  options: DeliveryBenchOptions = {},
  acknowledge: NonNullable<Channel['acknowledge']> = async () => undefined,
): Promise<{ readonly made: DeliveryBench; readonly shown: Inbound[] }> => {
  const shown: Inbound[] = []
  const made = await bench({
    ...options,
    channel: {
      ...options.channel,
      acknowledge(inbound, signal) {
        shown.push(inbound)
        return acknowledge(inbound, signal)
      },
    },
  })
  return { made, shown }
}

describe('a message is acknowledged', () => {
  test('once, when its turn begins, with the message that the channel delivered', async () => {
    const { made, shown } = await acknowledging()
    await made.receive(message('m1'))
    await settle()
    await made.receive(message('m1'))
    await settle()
    expect(shown).toEqual([message('m1')])
    expect(made.turns).toHaveLength(1)
  })

  test('not before the message before it in its session has ended', async () => {
    const gate = Promise.withResolvers<void>()
    const { made, shown } = await acknowledging({
      async turn({ text }) {
        await gate.promise
        return text
      },
    })
    await made.receive(message('m1'), message('m2'))
    await settle()
    expect(shown.map(({ id }) => id)).toEqual(['m1'])
    gate.resolve()
    await settle()
    expect(shown.map(({ id }) => id)).toEqual(['m1', 'm2'])
  })

  test('once, however many attempts fail', async () => {
    const { made, shown } = await acknowledging({
      turn() {
        throw new AppError('upstream', 'the model fell over')
      },
    })
    await made.receive(message('poison'))
    await advanceUntil(() => made.turns.length === 5)
    expect(shown).toHaveLength(1)
  })

  test('once, although attempts do not count while the model is away', async () => {
    const { made, shown } = await acknowledging({
      turn({ text }) {
        if (made.turns.length < 3) throw new AppError('unavailable', 'the model is away')
        return text
      },
    })
    await made.receive(message('m1'))
    await advanceUntil(() => made.turns.length === 3)
    expect(shown).toHaveLength(1)
  })

  test('once, although a stop of the daemon interrupts its turn', async () => {
    const cut = Promise.withResolvers<never>()
    const first = await acknowledging({ turn: () => cut.promise })
    await first.made.receive(message('m1'))
    await settle()
    expect(first.shown).toHaveLength(1)
    const stopped = first.made.deliveries.stop(0)
    cut.reject(new AppError('unavailable', 'stopping'))
    await stopped
    const second = await acknowledging({ store: first.made.store })
    await settle()
    expect(second.made.turns).toMatchObject([{ text: 'text of m1', delivery: { attempts: 1 } }])
    expect(second.shown).toEqual([])
  })
})

describe('nothing is acknowledged', () => {
  test('for a replayed message', async () => {
    const { made, shown } = await acknowledging()
    await made.receive(message('m1'))
    await settle()
    expect(shown).toHaveLength(1)
    const [row] = await made.store.inbox.list({ limit: 1 })
    await clock.advance(1000)
    await made.store.inbox.replay(row?.number ?? 0)
    made.deliveries.wake()
    await settle()
    expect(made.turns).toHaveLength(2)
    expect(shown).toHaveLength(1)
  })

  test('for a sender outside of the allowlist', async () => {
    const { made, shown } = await acknowledging({ channel: { allow: [] } })
    expect(await made.receive(message('m1'))).toMatchObject({ denied: 1 })
    await settle()
    expect(shown).toEqual([])
  })

  test('for a command', async () => {
    const { made, shown } = await acknowledging()
    await made.receive(message('m1', { text: '/status' }))
    await settle()
    expect(made.sent).toHaveLength(1)
    expect(shown).toEqual([])
  })

  test('for a message that a procedure takes', async () => {
    const { made, shown } = await acknowledging({ triggers: ['/x'], channel: { webhook: WEBHOOK } })
    await made.receive(message('m1'))
    await settle()
    expect(await states(made)).toEqual({ inbox: ['done'], outbox: [] })
    expect(shown).toEqual([])
  })
})

describe('the turn', () => {
  test('does not wait for a platform that never answers, which is given up after ten seconds', async () => {
    let given: AbortSignal | undefined
    const { made } = await acknowledging({}, (_, signal) => {
      given = signal
      return new Promise(() => undefined)
    })
    await made.receive(message('m1'))
    await settle()
    expect(await states(made)).toEqual({ inbox: ['done'], outbox: ['sent'] })
    expect(given?.aborted).toBe(false)
  })

  test('is answered although the platform refuses, and the log says so at level debug', async () => {
    const { made } = await acknowledging({}, () => Promise.reject(new AppError('forbidden', 'no reactions here')))
    await made.receive(message('m1'))
    await settle()
    expect(await states(made)).toEqual({ inbox: ['done'], outbox: ['sent'] })
    expect(host.logs).toContainEqual(expect.objectContaining({ level: 'debug', message: 'message not acknowledged' }))
  })

  test('is answered although the channel throws synchronously', async () => {
    const { made } = await acknowledging({}, () => {
      throw new Error('a bug')
    })
    await made.receive(message('m1'))
    await settle()
    expect(await states(made)).toEqual({ inbox: ['done'], outbox: ['sent'] })
  })
})
