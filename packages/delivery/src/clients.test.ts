import { expect, test } from 'vitest'
import { createClients } from './clients.ts'

test('gives one identity to one device on one connection', () => {
  const clients = createClients()
  const [connection, other] = [{}, {}]
  const id = clients.of(connection, 'device-a')
  expect(id).toMatch(/^[0-9a-f]{32}$/)
  expect(clients.of(connection, 'device-a')).toBe(id)
  const different = [
    clients.of(connection, 'device-b'),
    clients.of(connection, null),
    clients.of(other, 'device-a'),
    createClients().of(connection, 'device-a'),
  ]
  expect(new Set([id, ...different]).size).toBe(5)
})

test('gives one identity to a sender of a channel, and another on another channel', () => {
  const clients = createClients()
  const id = clients.ofCaller('channel:roomchat/bot/alice')
  expect(clients.ofCaller('channel:roomchat/bot/alice')).toBe(id)
  expect(clients.ofCaller('channel:textrelay/bot/alice')).not.toBe(id)
  expect(clients.ofCaller('channel:roomchat/other/alice')).not.toBe(id)
})

test('remembers a bounded number of senders, and of devices for each connection', () => {
  const clients = createClients()
  const first = clients.ofCaller('first')
  for (let index = 0; index < 10_000; index++) clients.ofCaller(String(index))
  expect(clients.ofCaller('first')).not.toBe(first)
  const connection = {}
  const device = clients.of(connection, 'first')
  for (let index = 0; index < 64; index++) clients.of(connection, String(index))
  expect(clients.of(connection, 'first')).not.toBe(device)
})
