import type { TurnRequest } from '@sluice/agent'
import { AppError, type ModelMessage, ROOMS, roomKey } from '@sluice/sdk'
import { expect, test } from 'vitest'
import {
  advanceUntil,
  bench,
  clock,
  type DeliveryBenchOptions,
  message,
  open,
  running,
  settle,
  setUpDeliveries,
  states,
  until,
} from '../testing/delivery-bench.ts'

setUpDeliveries()

const said = (text: string): ModelMessage => ({ role: 'user', content: [{ type: 'text', text }] })
const OTHER = '+15550003333'

/** A bench whose turns do a step on demand, and end when they are released. */
async function stepBench(options: DeliveryBenchOptions = {}) {
  const released = Promise.withResolvers<void>()
  const acknowledged: string[] = []
  const made = await bench({
    pacing: { steering: 'steer' },
    channel: { acknowledge: async ({ id }) => void acknowledged.push(id) },
    async turn({ text, signal }) {
      const aborted = Promise.withResolvers<never>()
      signal?.addEventListener('abort', () => aborted.reject(new AppError('aborted', 'The turn was aborted')))
      await Promise.race([released.promise, aborted.promise])
      return `re: ${text}`
    },
    ...options,
  })
  const words = (turn: TurnRequest | undefined = made.turns.at(-1)) => turn?.delivery?.furtherWords?.()
  return { made, words, acknowledged, release: () => released.resolve() }
}

test('a message of the person while the own turn runs is read at its next step, once', async () => {
  const { made, words, acknowledged, release } = await stepBench()
  await made.receive(message('m1'))
  await until(() => made.turns.length === 1)
  expect(await words()).toBeUndefined()
  await made.receive(message('other', { sender: OTHER }), message('m2'), message('m3'))
  await made.receive(message('m3'))
  const [own] = made.turns
  const found = await words(own)
  expect(found).toMatchObject({ text: 'text of m2\ntext of m3' })
  expect(await found?.take([said('text of m1'), said(found.text)])).toBe(true)
  expect(await words(own)).toBeUndefined()
  expect(found?.superseded()?.aborted).toBe(false)
  release()
  await until(() => made.sent.length === 2)
  expect(made.turns.map(({ text }) => text)).toEqual(['text of m1', 'text of other'])
  expect(acknowledged.toSorted()).toEqual(['m1', 'm2', 'm3', 'other'])
  await settle()
  expect((await states(made)).inbox).toEqual(Array(4).fill('done'))
})

test.each([
  ['before', false],
  ['after', true],
])('a stop %s the step is stored loses nothing and shows nothing twice', async (_, isTaken) => {
  const first = await stepBench()
  await first.made.receive(message('m1'))
  await until(() => first.made.turns.length === 1)
  await first.made.receive(message('m2'))
  const found = await first.words()
  const checkpoint = [said('text of m1'), said('text of m2')]
  if (isTaken) expect(await found?.take(checkpoint)).toBe(true)
  const stopping = running.splice(0)[0]?.stop(0)
  first.release()
  // The real agent ends an aborted turn without an answer; here the answer of the first life is made in the second one.
  await stopping
  const store = open()
  const rows = await store.inbox.list({ limit: 2 })
  expect(rows.map(({ state }) => state)).toEqual(isTaken ? ['done', 'done'] : ['pending', 'done'])
  const second = await bench({ store, pacing: { steering: 'steer' } })
  await advanceUntil(() => second.deliveries.load().messages === 0)
  expect(second.turns.map(({ text }) => text)).toEqual(isTaken ? [] : ['text of m2'])
})

test('a turn that a failure interrupts goes on with the words that it has read', async () => {
  let failures = 1
  const { made, words } = await stepBench({
    turn: async ({ delivery, text }) => {
      if (failures-- > 0) {
        await made.receive(message('m2'))
        const found = await delivery?.furtherWords?.()
        expect(await found?.take([said('text of m1'), said(found.text)])).toBe(true)
        throw new AppError('unavailable', 'the model is away', { isPassing: true })
      }
      return `re: ${text}`
    },
  })
  await made.receive(message('m1'))
  await advanceUntil(() => made.sent.some(({ text }) => text.startsWith('re:')))
  expect(made.turns).toHaveLength(2)
  expect(made.turns[1]?.delivery?.checkpoint).toEqual([said('text of m1'), said('text of m2')])
  expect(await words()).toBeUndefined()
})

test('an edit between the reading and the step is read with the next look', async () => {
  const { made, words, release } = await stepBench()
  await made.receive(message('m1'))
  await until(() => made.turns.length === 1)
  await made.receive(message('m2'))
  const stale = await words()
  await made.receive(message('e', { text: 'corrected', changes: { message: 'm2', what: 'edited' } }))
  await settle()
  expect(await stale?.take([said('text of m1'), said('text of m2')])).toBe(false)
  expect(await words()).toMatchObject({ text: 'corrected' })
  release()
  await until(() => made.sent.length === 2)
})

test('a running turn reads an album only once it is whole, and nothing that follows it before', async () => {
  const { made, words, release } = await stepBench()
  await made.receive(message('m1'))
  await until(() => made.turns.length === 1)
  const group = { id: 'album' }
  await made.receive(message('m2'), message('a1', { group }), message('m3'))
  expect(await words()).toMatchObject({ text: 'text of m2' })
  await clock.advance(1000)
  await made.receive(message('a2', { group }))
  expect(await words()).toMatchObject({ text: 'text of m2' })
  await clock.advance(1500)
  expect(await words()).toMatchObject({ text: 'text of m2\ntext of a1\ntext of m3\ntext of a2' })
  release()
  await advanceUntil(() => made.deliveries.load().messages === 0)
})

test('a running turn leaves an album to the next one that would go beyond its 20 messages', async () => {
  const { made, words, release } = await stepBench({ pacing: { steering: 'steer', batchMs: undefined } })
  await made.receive(message('m1'))
  await until(() => made.turns.length === 1)
  const texts = Array.from({ length: 18 }, (_, index) => message(`n${index}`))
  const album = Array.from({ length: 3 }, (_, index) => message(`a${index}`, { group: { id: 'album' } }))
  await made.receive(...texts, ...album, message('last'))
  await settle()
  await clock.advance(1500)
  const found = await words()
  expect(found?.text.split('\n')).toHaveLength(18)
  expect(await found?.take([said(found.text)])).toBe(true)
  expect(await words()).toBeUndefined()
  release()
  await advanceUntil(() => made.deliveries.load().messages === 0)
  expect(made.turns.map(({ text }) => text)).toEqual(['text of m1', 'text of a0\ntext of a1\ntext of a2\ntext of last'])
})

test('with queue, messages wait for the end of the turn', async () => {
  const { made, release } = await stepBench({ pacing: { steering: 'queue' } })
  await made.receive(message('m1'), message('m2'))
  await until(() => made.turns.length === 1)
  expect(made.turns[0]?.delivery).not.toHaveProperty('furtherWords')
  release()
  await until(() => made.turns.length === 2)
})

test('with interrupt, the step is broken off, and the same turn goes on with the new words', async () => {
  const { made, words, release } = await stepBench({ pacing: { steering: 'interrupt' } })
  await made.receive(message('m1'))
  await until(() => made.turns.length === 1)
  await made.receive(message('other', { sender: OTHER }))
  await until(() => made.turns.length === 2)
  await made.receive(message('m2'))
  await until(() => made.turns.length === 3)
  const again = made.turns[2]
  expect(again).toMatchObject({ text: 'text of m1' })
  expect(again?.delivery).toMatchObject({ turnId: made.turns[0]?.delivery?.turnId, attempts: 1 })
  const found = await words(again)
  expect(found).toMatchObject({ text: 'text of m2' })
  expect(await found?.take([said('text of m1'), said('text of m2')])).toBe(true)
  release()
  await until(() => made.sent.length === 2)
  await settle()
  expect(await states(made)).toEqual({ inbox: ['done', 'done', 'done'], outbox: ['sent', 'sent'] })
})

test.each([
  ['before', ['m2', '/stop'], ['m1']],
  ['after', ['/stop', 'm2'], ['m1', 'm2']],
])('with interrupt, a message %s /stop does not undo it', async (_, texts, turns) => {
  const ends: (() => void)[] = []
  const made = await bench({
    pacing: { steering: 'interrupt' },
    abort: () => true,
    turn: ({ text }) =>
      text === 'm1' ? new Promise((_done, reject) => ends.push(() => reject(new AppError('aborted', 'The turn was aborted')))) : text,
  })
  await made.receive(message('m1', { text: 'm1' }))
  await until(() => made.turns.length === 1)
  for (const text of texts) {
    await made.receive(message(text, { text }))
    await settle()
  }
  for (const end of ends) end()
  await settle()
  expect(made.turns.map(({ text }) => text)).toEqual(turns)
  expect((await states(made)).inbox).toEqual(['done', 'done', 'done'])
})

test('with interrupt, a turn is interrupted at most 20 times, and neither by a reminder nor in a muted conversation', async () => {
  const { made, release } = await stepBench({ pacing: { steering: 'interrupt' } })
  const { receive } = made
  await receive(message('m0'))
  await until(() => made.turns.length === 1)
  await made.deliveries.deliver(made.channel, message('reminder'), made.turns[0]?.session ?? '', clock.nowMs())
  await settle()
  expect(made.turns).toHaveLength(1)
  await receive(message('c1', { text: '/mute' }))
  await settle()
  await receive(message('muted'))
  await settle()
  expect(made.turns).toHaveLength(1)
  await receive(message('c2', { text: '/unmute' }))
  await settle()
  for (let count = 1; count <= 22; count++) {
    await receive(message(`m${count}`))
    await settle()
  }
  expect(made.turns).toHaveLength(21)
  release()
  await settle()
})

test('/stop ends the turn with the words that it has read', async () => {
  const { made, words } = await stepBench({
    abort: () => true,
    turn: () => new Promise((_, reject) => void clock.sleep(1000).then(() => reject(new AppError('aborted', 'The turn was aborted')))),
  })
  await made.receive(message('m1'))
  await until(() => made.turns.length === 1)
  await made.receive(message('m2'))
  const found = await words()
  expect(await found?.take([said('both')])).toBe(true)
  await made.receive(message('c', { text: '/stop' }))
  await settle()
  await clock.advance(1000)
  await settle()
  expect(made.sent.map(({ text }) => text)).toEqual(['Stopped.'])
  expect(made.turns).toHaveLength(1)
  expect((await states(made)).inbox).toEqual(['done', 'done', 'done'])
})

test('a dead letter is replayed with all messages that its turn had read', async () => {
  let isAway = true
  const { made } = await stepBench({
    turn: async ({ delivery, text }) => {
      if (!isAway) return `re: ${text}`
      await made.receive(message('m2'))
      const found = await delivery?.furtherWords?.()
      await found?.take([said('both')])
      throw new AppError('upstream', 'the key is wrong', { refusedFor: 'key' } as never)
    },
  })
  await made.receive(message('m1'))
  await advanceUntil(() => made.deliveries.load().messages === 0)
  const dead = (await made.store.inbox.list({ limit: 5 })).find(({ state }) => state === 'dead')
  isAway = false
  expect(await made.store.inbox.replay(dead?.number ?? 0)).toBe(true)
  made.deliveries.wake()
  await advanceUntil(() => made.sent.filter(({ text }) => text.startsWith('re:')).length === 2)
  expect(made.turns.slice(-2).map(({ text }) => text)).toEqual(['text of m1', 'text of m2'])
})

test('a message to the bot does not join a turn that may be silent, and gets a turn of its own', async () => {
  const gate = Promise.withResolvers<string>()
  const made = await bench({
    pacing: { steering: 'steer' },
    turn: ({ text, maySilent }) => (maySilent ? gate.promise : `re: ${text}`),
  })
  const room = { sender: 'ann', to: { to: 'room' } }
  await made.store.keyValue(ROOMS).set(roomKey({ channel: 'x', account: 'our-number', conversation: 'room' }), { respond: 'judge' })
  await made.receive(message('m1', { ...room, addressed: 'overheard' }))
  await until(() => made.turns.length === 1)
  await made.receive(message('m2', { ...room, addressed: 'overheard' }), message('m3', { ...room, addressed: 'mention' }))
  await settle()
  const found = await made.turns[0]?.delivery?.furtherWords?.()
  expect(found?.text).toBe('text of m2')
  expect(await found?.take([said('text of m1'), said('text of m2')])).toBe(true)
  expect(await made.turns[0]?.delivery?.furtherWords?.()).toBeUndefined()
  gate.resolve('')
  await settle()
  expect(made.turns.map(({ text, maySilent }) => [text, maySilent === true])).toEqual([
    ['text of m1', true],
    ['text of m3', false],
  ])
  expect(made.sent.map(({ text }) => text)).toEqual(['re: text of m3'])
})

test.each([
  ['/mute', ['text of m1']],
  ['/model two', ['text of m1', 'text of m2']],
  ['/help', ['text of m1']],
])('what comes after %s is read as the command says', async (command, turns) => {
  const { made, words, release } = await stepBench({ models: ['one', 'two'], operators: ['+15550002222'] })
  await made.receive(message('m1'))
  await until(() => made.turns.length === 1)
  await made.receive(message('c', { text: command }))
  await settle()
  await made.receive(message('m2'))
  await settle()
  const found = await words(made.turns[0])
  expect(found?.text).toBe(command === '/help' ? 'text of m2' : undefined)
  await found?.take([said('text of m1'), said('text of m2')])
  release()
  await settle()
  expect(made.turns.map(({ text }) => text)).toEqual(turns)
})
