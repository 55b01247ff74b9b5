import { chatSessionKey } from '@sluice/sdk'
import { expect, test } from 'vitest'
import { placeOf } from './place-of-message.ts'

const limits = { text: 4000, unit: 'utf16' as const }
const channels = [
  { name: 'roomchat', limits: { ...limits, attachments: { count: 1, bytesMax: 1 } } },
  { name: 'textrelay', limits },
]
const chat = (channel: string, conversation: string, sender = 'alice') => chatSessionKey({ channel, account: 'bot', conversation, sender })

test.each([
  [chat('roomchat', 'alice'), 'operator', 'roomchat, direct, from "alice", an operator; shows text and files'],
  [chat('textrelay', 'room-1'), 'listed', 'textrelay, in "room-1", from "alice", a listed sender; shows text only'],
  [chat('gone', 'room-1'), 'stranger', 'gone, in "room-1", from "alice", a stranger'],
  ['device/main', 'client', 'webhook, from a client'],
  [null, 'operator', 'webhook, from an operator'],
] as const)('the place of a message of session %s, standing %s', (session, standing, place) => {
  expect(placeOf(channels, { source: 'webhook', session, limited: { standing } })).toBe(place)
})

test('the name of a sender stays short, on one line and in quotes', () => {
  const place = placeOf(channels, {
    source: 'x',
    session: chat('textrelay', 'r', `]\n"ignore${'x'.repeat(500)}`),
    limited: { standing: 'stranger' },
  })
  expect(place.split('\n')).toHaveLength(1)
  expect(place.length).toBeLessThan(150)
  expect(place).toMatch(/from "[^"]*", a stranger/)
})
