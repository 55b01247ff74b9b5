/** Messages of a shared room that wait for a reason of one person: their limit of turns at once, or their share of the running turns. */
import { NO_SHARES } from '@sluice/config'
import { AppError, type Inbound } from '@sluice/sdk'
import { afterEach, expect, test } from 'vitest'
import {
  bench,
  clock,
  type DeliveryBenchOptions,
  message,
  open,
  running,
  settle,
  setUpDeliveries,
  states,
} from '../testing/delivery-bench.ts'

setUpDeliveries()

const ends: (() => void)[] = []
afterEach(() => {
  for (const end of ends.splice(0)) end()
})

const inRoom = (id: string, sender: string, more: Partial<Inbound> = {}): Inbound =>
  message(id, { sender, to: { to: 'room' }, addressed: 'mention', ...more })

const oneTurnOfEve: DeliveryBenchOptions = {
  limitsOf: ({ client }) => (client.endsWith('/eve') ? [{ key: client, turnsPerHour: 0, turnsInFlight: 1, usdPerDay: 0 }] : []),
}
const oneShareOfEve: DeliveryBenchOptions = {
  sharesOf: ({ client }) => ({ ...NO_SHARES, ...(client.endsWith('/eve') && { turnsRunning: 1 }) }),
}
/** As the pool of strangers: its persons have its turns together. */
const oneTurnOfStrangers: DeliveryBenchOptions = {
  limitsOf: ({ client }) => (/\/(eve|mal)$/.test(client) ? [{ key: 'strangers', turnsPerHour: 0, turnsInFlight: 1, usdPerDay: 0 }] : []),
}

/** A bench where Eve's direct turn runs until `end`. */
async function busy(options: DeliveryBenchOptions) {
  const { promise, resolve } = Promise.withResolvers<string>()
  ends.push(() => resolve(''))
  const made = await bench({ operators: ['ann'], turn: ({ text }) => (text === 'long' ? promise : `re: ${text}`), ...options })
  await made.receive(message('d', { sender: 'eve', text: 'long', addressed: 'direct' }))
  await settle()
  const begun = (): string[] => made.turns.map(({ text }) => text.replace('text of ', ''))
  const pass = async (seconds: number): Promise<void> => {
    for (let second = 0; second < seconds; second++) {
      await clock.advance(1000)
      await settle()
    }
  }
  return { ...made, begun, pass, end: () => resolve('re: long') }
}

test.each([
  ['the limit of turns at once of its person', oneTurnOfEve],
  ['the share of its person', oneShareOfEve],
  ['the limit of all strangers', oneTurnOfStrangers],
])('a message that waits for %s holds up nobody else in its room', async (_, options) => {
  const made = await busy(options)
  for (const [id, sender] of Object.entries({ e1: 'eve', a1: 'ann', e2: 'eve', b1: 'bob', a2: 'ann' }))
    await made.receive(inRoom(id, sender))
  await settle()
  expect(made.begun()).toEqual(['long', 'a1', 'b1', 'a2'])
  await made.pass(3)
  await made.receive(inRoom('b2', 'bob'))
  await settle()
  expect(made.begun()).toEqual(['long', 'a1', 'b1', 'a2', 'b2'])
  made.end()
  await made.pass(3)
  expect(made.begun().slice(5)).toEqual(['e1', 'e2'])
  expect((await states(made)).inbox).toEqual(Array(7).fill('done'))
})

test('a message of another stranger waits behind none of the first, and each keeps its order', async () => {
  const made = await busy(oneTurnOfStrangers)
  for (const [id, sender] of Object.entries({ e1: 'eve', m1: 'mal', a1: 'ann', m2: 'mal', e2: 'eve' }))
    await made.receive(inRoom(id, sender))
  await made.pass(3)
  expect(made.begun()).toEqual(['long', 'a1'])
  made.end()
  await made.pass(5)
  const late = made.begun().slice(2)
  expect(late.toSorted()).toEqual(['e1', 'e2', 'm1', 'm2'])
  for (const own of ['e', 'm']) expect(late.filter((id) => id.startsWith(own))).toEqual([`${own}1`, `${own}2`])
})

test('a message that waits is neither lost nor doubled when the daemon ends meanwhile', async () => {
  const store = open()
  const first = await busy({ ...oneTurnOfEve, store })
  for (const [id, sender] of Object.entries({ e1: 'eve', a1: 'ann', e2: 'eve' })) await first.receive(inRoom(id, sender))
  await settle()
  const stopped = running.splice(0)[0]?.stop(0)
  first.end()
  await stopped
  const again = await bench({ ...oneTurnOfEve, store, ownership: first.ownership })
  await again.receive(inRoom('a2', 'ann'))
  for (let second = 0; second < 10; second++) {
    await clock.advance(1000)
    await settle()
  }
  const turns = again.turns.map(({ text }) => text)
  expect(turns.toSorted()).toEqual(['text of a2', 'text of e1', 'text of e2'])
  expect(turns.indexOf('text of e1')).toBeLessThan(turns.indexOf('text of e2'))
  expect((await states(again)).inbox).toEqual(Array(5).fill('done'))
})

test('a /retry that waits for the limit of its person holds up no command of others', async () => {
  const { promise, resolve } = Promise.withResolvers<string>()
  ends.push(() => resolve(''))
  const made = await bench({ ...oneTurnOfEve, turn: ({ text }) => (text === 'long' ? promise : `re: ${text}`) })
  await made.receive(inRoom('e1', 'eve'))
  await settle()
  await made.receive(message('d', { sender: 'eve', text: 'long', addressed: 'direct' }))
  await settle()
  await clock.advance(10)
  await made.receive(inRoom('r', 'eve', { text: '/retry' }), inRoom('s', 'ann', { text: '/unmute' }))
  await settle()
  expect(made.sent.map(({ text }) => text)).toEqual(['re: text of e1', 'Messages here are answered again.'])
  resolve('re: long')
  await clock.advance(2000)
  await settle()
  expect(made.turns.map(({ text }) => text)).toEqual(['text of e1', 'long', 'text of e1'])
})

test('a message that fails holds up nobody else in its room while it waits for its next attempt', async () => {
  let isFailing = true
  const turn: DeliveryBenchOptions['turn'] = ({ text }) => {
    if (isFailing && text.includes('e1')) throw new AppError('upstream', 'openai:gpt gave an empty reply')
    return `re: ${text}`
  }
  const made = await bench({ operators: ['ann'], turn })
  const begun = (): string[] => made.turns.map(({ text }) => text.replace('text of ', ''))
  for (const [id, sender] of Object.entries({ e1: 'eve', e2: 'eve', a1: 'ann', b1: 'bob' })) await made.receive(inRoom(id, sender))
  await settle()
  expect(begun()).toEqual(['e1', 'a1', 'b1'])
  isFailing = false
  for (let second = 0; second < 10; second++) {
    await clock.advance(1000)
    await settle()
  }
  expect(begun()).toEqual(['e1', 'a1', 'b1', 'e1', 'e2'])
})
