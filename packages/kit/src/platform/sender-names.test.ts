import { AppError, type Inbound } from '@sluice/sdk'
import { testHost } from '@sluice/testkit/host'
import { expect, test } from 'vitest'
import { SenderNames } from './sender-names.ts'

const said = (id: string, sender = 'u1', more: Partial<Inbound> = {}): Inbound => ({
  id,
  account: 'a',
  sender,
  to: { to: 'room' },
  addressed: 'overheard',
  text: 'hi',
  ...more,
})

function reader(read: (sender: string, signal: AbortSignal) => Promise<string>, allow: readonly string[] = ['u1', 'u2']) {
  const host = testHost()
  const calls: string[] = []
  const names = new SenderNames({
    host,
    channel: 'c',
    isAllowed: (sender) => allow.includes(sender),
    read({ sender }, signal) {
      calls.push(sender)
      return read(sender, signal)
    },
  })
  return { host, calls, names }
}

test('a name is looked up once a day for each sender', async () => {
  const { names, calls, host } = reader(async (sender) => `Name of ${sender}`)
  const found = await Promise.all([said('m1'), said('m2'), said('m3', 'u2')].map((message) => names.named(message)))
  expect(found.map(({ name }) => name)).toEqual(['Name of u1', 'Name of u1', 'Name of u2'])
  expect(calls).toEqual(['u1', 'u2'])
  await host.clock.advance(86_400_001)
  await names.named(said('m4'))
  expect(calls).toEqual(['u1', 'u2', 'u1'])
})

test('no name is looked up for strangers, presses and deletions, nor for a message that has one', async () => {
  const { names, calls } = reader(async () => 'Ada')
  const messages = [
    said('m1', 'stranger'),
    said('m2', 'u1', { pressed: { message: 'm', value: 'yes' } }),
    said('m3', 'u1', { changes: { message: 'm1', what: 'deleted' } }),
    said('m4', 'u1', { name: 'Own' }),
  ]
  expect(await Promise.all(messages.map((message) => names.named(message)))).toEqual(messages)
  expect(calls).toEqual([])
})

test('a refusal about one sender is remembered, and does not concern others', async () => {
  const { names, calls } = reader(async (sender) => {
    if (sender === 'u1') throw new AppError('invalid_request', 'user_not_found')
    return 'Ben'
  })
  const found = [await names.named(said('m1')), await names.named(said('m2')), await names.named(said('m3', 'u2'))]
  expect(found.map(({ name }) => name)).toEqual([undefined, undefined, 'Ben'])
  expect(calls).toEqual(['u1', 'u2'])
})

test('any other failure pauses the look-ups, and is logged once', async () => {
  const failing = { is: true }
  const { names, calls, host } = reader(async () => {
    if (failing.is) throw new AppError('forbidden', 'missing_scope')
    return 'Ada'
  })
  for (const sender of ['u1', 'u2', 'u1']) expect((await names.named(said('m1', sender))).name).toBeUndefined()
  expect(calls).toEqual(['u1'])
  failing.is = false
  await host.clock.advance(600_001)
  expect((await names.named(said('m2'))).name).toBe('Ada')
})

test('a known name is kept while the platform does not answer', async () => {
  const failing = { is: false }
  const { names, host } = reader(async () => {
    if (failing.is) throw new AppError('unavailable', 'down')
    return 'Ada'
  })
  await names.named(said('m1'))
  failing.is = true
  await host.clock.advance(86_400_001)
  expect((await names.named(said('m2'))).name).toBe('Ada')
})

test('a message waits at most 1.5 s, and does not overtake one of its conversation', async () => {
  const { names, host } = reader((sender, signal) =>
    sender === 'u1' ? new Promise((_, reject) => signal.addEventListener('abort', reject)) : Promise.resolve('Ben'),
  )
  const order: string[] = []
  const arrive = async (message: Inbound) => order.push((await names.named(message)).id)
  const waiting = [arrive(said('m1')), arrive(said('m2', 'u2'))]
  await arrive(said('m3', 'u2', { to: { to: 'elsewhere' } }))
  expect(order).toEqual(['m3'])
  await host.clock.advance(1500)
  await Promise.all(waiting)
  expect(order).toEqual(['m3', 'm1', 'm2'])
})

test('a name is one line without marks that change the direction of text', async () => {
  const { names } = reader(async () => '  Ada\n\u202egnp.exe\u0007  ')
  expect((await names.named(said('m1'))).name).toBe('Ada gnp.exe')
})
