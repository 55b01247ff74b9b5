import { expect, test } from 'vitest'
import { bench, clock, message, settle, setUpDeliveries, until } from '../testing/delivery-bench.ts'

setUpDeliveries()

test('the words of a quoted message are added where the platform sends only its id', async () => {
  const made = await bench()
  await made.receive(message('m1', { text: 'ticket 4711 burns' }))
  await until(() => made.sent.length === 1)
  await made.receive(message('m2', { text: 'what does it mean?', inReplyTo: 'm1' }))
  await until(() => made.sent.length === 2)
  expect(made.turns[1]?.text).toContain("(The sender replies to the sender's own message")
  expect(made.turns[1]?.text).toContain('ticket 4711 burns')
})

test('of several messages that became one turn, only the quoted one is quoted', async () => {
  const made = await bench({ pacing: { batchMs: 300 } })
  const picture = { kind: 'image', name: 'cat', source: { id: 'cat' } } as const
  await made.receive(message('m1', { text: 'ticket 4711 burns' }), message('m2', { text: 'and 4712', attachments: [picture] }))
  await settle()
  await clock.advance(300)
  await until(() => made.sent.length === 1)
  await made.receive(message('m3', { text: 'what does it mean?', inReplyTo: 'm1' }))
  await settle()
  await clock.advance(300)
  await until(() => made.sent.length === 2)
  expect(made.turns[1]?.text).toBe('what does it mean?\n(The sender replies to the sender\'s own message: "ticket 4711 burns")')
})

test('a message of another conversation is not quoted', async () => {
  const made = await bench()
  await made.receive(message('m1', { text: 'ticket 4711 burns' }))
  await until(() => made.sent.length === 1)
  await made.receive(message('m2', { text: 'what does it mean?', inReplyTo: 'm1', to: { to: 'elsewhere' } }))
  await until(() => made.sent.length === 2)
  expect(made.turns[1]?.text).toBe('what does it mean?')
})
