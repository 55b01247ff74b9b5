import { AppError } from '@sluice/sdk'
import { expect, test } from 'vitest'
import { bench, clock, host, message, open, settle, setUpDeliveries, storeWith, until, untilRow } from '../testing/delivery-bench.ts'

setUpDeliveries()

test('a reply that the platform reports as undelivered is dead with its words, and operators see it', async () => {
  const made = await bench({ send: async () => ({ id: 'wamid.1' }) })
  await made.receive(message('m1'))
  await settle()
  const reports = [{ message: 'wamid.1', error: 'our-token: undeliverable (code 131026)' }]
  await made.deliveries.report(made.channel, reports)
  const error = 'The platform reported later that it did not deliver it: [redacted]: undeliverable (code 131026)'
  expect(await made.store.outbox.list({ limit: 1 })).toMatchObject([{ state: 'dead', error }])
  expect(host.logs).toContainEqual(expect.objectContaining({ level: 'error', message: 'reply not delivered' }))
  expect(host.emitted).toContainEqual({ type: 'delivery', direction: 'outbound', channel: 'x', number: 1, state: 'dead', error })
  const told = () => made.observed.filter(({ kind }) => kind === 'reply')
  expect(told()).toEqual([{ kind: 'reply', channel: 'x', what: 'undelivered' }])
  await made.deliveries.report(made.channel, reports)
  expect(told()).toHaveLength(1)
})

test('a report that arrives before the outcome of the send is stored is taken a little later', async () => {
  const answer = Promise.withResolvers<{ id: string }>()
  const made = await bench({ send: () => answer.promise })
  await made.receive(message('m1'))
  await settle()
  await made.deliveries.report(made.channel, [{ message: 'wamid.1', error: 'undeliverable' }])
  answer.resolve({ id: 'wamid.1' })
  await until(() => made.sent.length === 1)
  await settle()
  await clock.advance(5000)
  await settle()
  await untilRow(made.store.outbox, { state: 'dead' })
})

test('a report is not lost while the outcome of the send cannot be stored for some seconds', async () => {
  let isAway = true
  const store = open()
  const away = storeWith(store, ({ outbox }) => ({
    outbox: {
      ...outbox,
      sent: async (...given) => {
        if (isAway) throw new AppError('unavailable', 'the disk is full')
        return outbox.sent(...given)
      },
    },
  }))
  const made = await bench({ store: away, send: async () => ({ id: 'wamid.1' }) })
  await made.receive(message('m1'))
  await settle()
  await made.deliveries.report(made.channel, [{ message: 'wamid.1', error: 'undeliverable' }])
  for (let second = 0; second < 10; second++) {
    await clock.advance(1000)
    await settle()
  }
  isAway = false
  for (let second = 0; second < 60; second++) {
    await clock.advance(1000)
    await settle()
  }
  await untilRow(made.store.outbox, { state: 'dead' })
})
