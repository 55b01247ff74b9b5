/** The notice in a shared room where messages wait behind those of others. */
import { AppError, type Inbound, ROOMS, type RoomRule, roomKey } from '@sluice/sdk'
import { afterEach, expect, test } from 'vitest'
import { bench, clock, type DeliveryBenchOptions, message, open, running, settle, setUpDeliveries } from '../testing/delivery-bench.ts'

setUpDeliveries()

const ends: (() => void)[] = []
afterEach(() => {
  for (const end of ends.splice(0)) end()
})

const WAITING = 'The answer takes longer than usual. It comes as soon as possible; you do not need to write again.'
const inRoom = (id: string, sender: string, more: Partial<Inbound> = {}): Inbound =>
  message(id, { sender, to: { to: 'room', replyTo: id }, addressed: 'mention', ...more })

const pass = async (secs: number): Promise<void> => {
  for (let sec = 0; sec < secs; sec++) {
    await clock.advance(1000)
    await settle()
  }
}

/** A bench in whose room a turn of Ann runs until `end`. */
async function busyRoom(options: DeliveryBenchOptions = {}) {
  const first = Promise.withResolvers<string>()
  ends.push(() => first.resolve(''))
  const made = await bench({ turn: ({ text }) => (text === 'text of a1' ? first.promise : `re: ${text}`), ...options })
  await made.receive(inRoom('a1', 'ann'))
  await settle()
  /** The ids of the messages that were answered with the notice. */
  const told = () => made.sent.flatMap(({ text, to }) => (text === WAITING ? [(to as Inbound['to']).replyTo] : []))
  const end = async (): Promise<void> => {
    first.resolve('re: text of a1')
    await settle()
  }
  return { ...made, told, end }
}

test('a room is told once that people wait behind the turn of another one for a minute, as a reply to the first of them', async () => {
  const made = await busyRoom()
  for (const [id, sender] of Object.entries({ b1: 'bob', a2: 'ann', b2: 'bob', c1: 'cleo' })) await made.receive(inRoom(id, sender))
  await pass(58)
  expect(made.told()).toEqual([])
  await pass(3)
  expect(made.told()).toEqual(['b1'])
  await pass(120)
  await made.end()
  expect(made.told()).toEqual(['b1'])
  expect(made.sent.slice(1).map(({ text }) => text)).toEqual(['a1', 'b1', 'a2', 'b2', 'c1'].map((id) => `re: text of ${id}`))
})

test('a room of 40 people gets one notice an hour while the model is away', async () => {
  const turn: DeliveryBenchOptions['turn'] = () => {
    throw new AppError('upstream', 'the model is away', { isPassing: true, retryAfterSecs: 30 })
  }
  const made = await busyRoom({ turn })
  for (let person = 1; person < 40; person++) await made.receive(inRoom(`b${person}`, `person ${person}`))
  await pass(300)
  expect(made.told()).toEqual(['b1'])
  await pass(3300)
  await made.receive(inRoom('c1', 'cleo'))
  await pass(70)
  expect(made.told()).toEqual(['b1', 'c1'])
})

test('a message that may end without an answer does not keep the notice from the next one', async () => {
  const made = await busyRoom()
  await made.receive(inRoom('b1', 'bob', { unverified: true }), inRoom('c1', 'cleo'), inRoom('d1', 'dan'))
  await pass(61)
  expect(made.told()).toEqual(['c1'])
})

test.each<[string, DeliveryBenchOptions, RoomRule, readonly Inbound[]]>([
  ['while nothing is answered', { operators: ['ann'] }, {}, [inRoom('c', 'ann', { text: '/mute' }), inRoom('b1', 'bob')]],
  ['of a remark that is judged', {}, { respond: 'judge' }, [inRoom('b1', 'bob', { addressed: 'overheard' })]],
  ['who waits behind an own message only', {}, {}, [inRoom('a2', 'ann')]],
  ['with `notice_after_secs = 0`', { config: { notice_after_secs: 0 } }, {}, [inRoom('b1', 'bob')]],
])('nobody is told %s', async (_, options, rule, written) => {
  const made = await busyRoom(options)
  await made.store.keyValue(ROOMS).set(roomKey({ channel: 'x', account: 'our-number', conversation: 'room' }), rule)
  for (const one of written) await made.receive(one)
  await pass(70)
  expect(made.told()).toEqual([])
  await made.end()
})

test('a room is not told again after a restart', async () => {
  const store = open()
  const first = await busyRoom({ store })
  await first.receive(inRoom('b1', 'bob'))
  await pass(61)
  expect(first.told()).toEqual(['b1'])
  const stopped = running.splice(0)[0]?.stop(0)
  await first.end()
  await stopped
  await store.inbox.replay(1)
  const again = await busyRoom({ store, ownership: first.ownership })
  await pass(70)
  expect([again.told(), (await store.inbox.get(2))?.state]).toEqual([[], 'pending'])
  await again.end()
})
