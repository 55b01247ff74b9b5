/** Messages that wait while the rule of their room changes. */
import { AppError, type Inbound, ROOMS, type RoomRule, roomKey, type Store } from '@sluice/sdk'
import { expect, it } from 'vitest'
import { advanceUntil, bench, clock, type DeliveryBench, message, settle, setUpDeliveries, until } from '../testing/delivery-bench.ts'

setUpDeliveries()

const ROOM = { channel: 'x', account: 'our-number', conversation: 'room' }
const inRoom = (id: string, sender: string, more: Partial<Inbound> = {}): Inbound =>
  message(id, { sender, to: { to: 'room' }, addressed: 'mention', ...more })
const setRule = (store: Store, rule: RoomRule): Promise<void> => store.keyValue(ROOMS).set(roomKey(ROOM), rule)
const ends = async ({ store }: DeliveryBench): Promise<(readonly [string, string, string | null])[]> =>
  (await store.inbox.list({ limit: 99 })).toReversed().map(({ messageId, state, error }) => [messageId, state, error] as const)
const NEVER = 'the rule of the room answers no messages'
const LEFT_OUT = 'the rule of the room leaves out its sender'

/** A bench in whose room a turn of Ann runs, behind which messages wait. */
async function busyRoom() {
  const first = Promise.withResolvers<string>()
  const made = await bench({ turn: ({ text }) => (text === 'text of 1' ? first.promise : `re: ${text}`) })
  await made.receive(inRoom('1', 'ann'))
  await until(() => made.turns.length === 1)
  const endFirst = async (): Promise<void> => {
    first.resolve('re: 1')
    await settle()
  }
  const begun = (): string[] => made.turns.map(({ text }) => text.replace('text of ', ''))
  return { ...made, begun, endFirst }
}

it('ends the waiting messages of people whom the rule leaves out by then, and answers the others', async () => {
  const made = await busyRoom()
  await made.receive(inRoom('2', 'bob'), inRoom('3', 'ann'))
  await settle()
  await setRule(made.store, { people: ['ann'] })
  await made.endFirst()
  expect(made.begun()).toEqual(['1', '3'])
  expect(await ends(made)).toEqual([
    ['1', 'done', null],
    ['2', 'done', LEFT_OUT],
    ['3', 'done', null],
  ])
})

it('ends each waiting piece on its own', async () => {
  const made = await bench({ pacing: { batchMs: 1500 } })
  await made.receive(inRoom('1', 'bob'), inRoom('2', 'bob'))
  await settle()
  await setRule(made.store, { respond: 'never' })
  await clock.advance(2000)
  await settle()
  expect(made.turns).toEqual([])
  expect(await ends(made)).toEqual([
    ['1', 'done', NEVER],
    ['2', 'done', NEVER],
  ])
})

it('ends a message that waits to be tried again', async () => {
  const made = await bench({ turn: () => Promise.reject(new Error('the model is away')) })
  await made.receive(inRoom('1', 'ann'))
  await until(() => made.turns.length === 1)
  await settle()
  await setRule(made.store, { respond: 'never' })
  let row = await made.store.inbox.get(1)
  await advanceUntil(() => {
    void made.store.inbox.get(1).then((now) => {
      row = now
    })
    return row?.endedAtMs !== null
  })
  expect([made.turns.length, await ends(made), made.sent]).toEqual([1, [['1', 'done', NEVER]], []])
})

it.each([
  ['the rule of its room', (made: DeliveryBench) => setRule(made.store, { respond: 'never' })],
  ['/mute', (made: DeliveryBench) => made.receive(inRoom('c', 'ann', { text: '/mute' }))],
])('replaces the draft of a message that %s ends while it waits to be tried again', async (_, close) => {
  const shown: unknown[] = []
  const made = await bench({
    channel: { draftEveryMs: 1000, update: async (_to, sent, { text }) => void shown.push([sent.id, text]) },
    turn: () => Promise.reject(new AppError('upstream', 'the model is away', { isPassing: true, retryAfterSecs: 5 })),
  })
  await made.receive(inRoom('1', 'ann'))
  await until(() => made.turns.length === 1)
  await settle()
  const draft = (await made.store.inbox.get(1))?.draft
  expect(draft).toBeDefined()
  await close(made)
  await settle()
  await clock.advance(20_000)
  await settle()
  expect([made.turns.length, (await ends(made))[0]?.[1]]).toEqual([1, 'done'])
  expect(shown).toEqual([[draft, 'This message could not be answered.']])
})

it('runs reminders where no message is answered, but none of people whom the rule leaves out', async () => {
  const made = await busyRoom()
  for (const sender of ['ann', 'bob']) {
    const session = made.turns[0]?.session ?? ''
    await made.deliveries.deliver(made.channel, inRoom(`schedule:${sender}`, sender), session, clock.nowMs())
  }
  await made.receive(inRoom('2', 'ann'))
  await settle()
  await setRule(made.store, { respond: 'never', people: ['ann'] })
  await made.endFirst()
  expect(made.begun()).toEqual(['1', 'schedule:ann'])
  expect(await ends(made)).toEqual([
    ['1', 'done', null],
    ['schedule:ann', 'done', null],
    ['schedule:bob', 'done', LEFT_OUT],
    ['2', 'done', NEVER],
  ])
})

it.each([
  [{ tools: 'all but web_fetch' }, []],
  [{ tools: ['web_fetch'], mood: 'new' }, ['web_fetch']],
  [{ mood: 'new' }, []],
  ['always', []],
  [{ respond: 'never' }, undefined],
])('runs a reminder with no more tools than the rule may allow: %j', async (rule, tools) => {
  const made = await bench()
  await made.store.keyValue(ROOMS).set(roomKey(ROOM), rule)
  await made.deliveries.deliver(made.channel, inRoom('schedule:1', 'ann'), 'channel:x/our-number/room/', clock.nowMs())
  await settle()
  expect(made.turns.map((turn) => turn.tools)).toEqual([tools])
})
