/** The order of answers in shared rooms, whatever fails and however often the daemon restarts. */
import { AppError, type Inbound, type Store } from '@sluice/sdk'
import { createRandom, type Random } from '@sluice/testkit/random'
import { expect, test } from 'vitest'
import {
  bench,
  clock,
  type DeliveryBenchOptions,
  message,
  open,
  running,
  settle,
  setUpDeliveries,
  storeWith,
} from '../testing/delivery-bench.ts'

setUpDeliveries()

const ROOMS = ['one', 'two']
const WRITERS = ['ann', 'bob', 'cleo', 'dan']
const MESSAGES = 40

/** A store whose writes fail now and then, as on a full disk, until `mend`. */
function failing(random: Random): { readonly store: Store; mend(): void } {
  let isMended = false
  const mayFail =
    <Given extends unknown[], Result>(write: (...given: Given) => Promise<Result>) =>
    (...given: Given): Promise<Result> =>
      !isMended && random.chance(0.15)
        ? Promise.reject(new AppError('unavailable', 'the disk is full', { isPassing: true }))
        : write(...given)
  const store = storeWith(open(), ({ inbox, turns }) => ({
    inbox: {
      ...inbox,
      start: mayFail(inbox.start),
      done: mayFail(inbox.done),
      retry: mayFail(inbox.retry),
      release: mayFail(inbox.release),
      join: mayFail(inbox.join),
    },
    turns: { ...turns, finish: mayFail(turns.finish) },
  }))
  const mend = (): void => {
    isMended = true
  }
  return { store, mend }
}

test.each([1, 2, 3, 4, 5, 6, 7, 8])('is that of arrival for all writers together (seed %i)', async (seed) => {
  const random = createRandom(seed)
  const { store, mend } = failing(random)
  const sent: { readonly room: string; readonly text: string }[] = []
  const options: DeliveryBenchOptions = {
    store,
    operators: ['ann'],
    pacing: { batchMs: random.pick([0, 300]) },
    send: async (to, { text }) => {
      sent.push({ room: to.to, text })
      return { id: `sent-${sent.length}` }
    },
    async turn({ text, signal }) {
      const isStopped = Promise.withResolvers<never>()
      signal?.addEventListener('abort', () => isStopped.reject(new AppError('aborted', 'The turn was stopped')))
      await Promise.race([clock.sleep(random.within(0, 400)), isStopped.promise])
      if (random.chance(0.1)) throw new AppError('upstream', 'the model is away', { isPassing: true })
      return `re: ${text}`
    },
  }
  let made = await bench(options)
  const inRoom = (id: string, text: string): Inbound =>
    message(id, { sender: random.pick(WRITERS), text, to: { to: random.pick(ROOMS), replyTo: id }, addressed: 'mention' })
  const numbers = new Map<string, number>()
  for (let number = 1; number <= MESSAGES; number++) {
    const mark = `mark-${number}-`
    numbers.set(mark, number)
    await made.receive(inRoom(`m${number}`, mark))
    if (random.chance(0.15)) await made.receive(inRoom(`c${number}`, '/stop'))
    if (random.chance(0.6)) {
      await clock.advance(random.within(1, 500))
      await settle()
    }
    if (random.chance(0.08)) {
      const stopped = running.splice(0)[0]?.stop(0)
      await clock.advance(500)
      await settle()
      await stopped
      made = await bench({ ...options, ownership: made.ownership })
    }
  }
  mend()
  for (let second = 0; second < 600 && made.deliveries.load().messages > 0; second++) {
    await clock.advance(1000)
    await settle()
  }
  await settle()
  expect(made.deliveries.load()).toEqual({ messages: 0, replies: 0 })
  for (const room of ROOMS) {
    const answered = sent.filter((one) => one.room === room).flatMap(({ text }) => /^re: (mark-\d+-)/.exec(text)?.[1] ?? [])
    const order = answered.map((mark) => numbers.get(mark) ?? 0)
    expect(order).toEqual(order.toSorted((one, other) => one - other))
    expect(new Set(order).size).toBe(order.length)
  }
  expect((await store.inbox.list({ limit: 500 })).filter(({ state }) => state !== 'done')).toEqual([])
})
