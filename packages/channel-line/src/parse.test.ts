import { expect, test } from 'vitest'
import { parse } from './parse.ts'
import { LINE_BOT, LINE_GROUP, LINE_USER } from './testing/fake.ts'

/** Returns the messages of a text message in a group that is a mention of the bot alone. */
function read(more: object) {
  const mention = { mentionees: [{ index: 0, length: 4, type: 'user', userId: LINE_BOT, isSelf: true }] }
  const message = { id: '1', type: 'text', text: '@Bot', mention, ...more }
  const event = { type: 'message', timestamp: 1, source: { type: 'group', groupId: LINE_GROUP, userId: LINE_USER }, message }
  const body = new TextEncoder().encode(JSON.stringify({ destination: LINE_BOT, events: [event] }))
  return parse({ body }, { groupPolicy: 'mention', groupSenders: undefined })
}

test('a mention alone counts when it quotes a message, and only then', () => {
  expect(read({ quotedMessageId: '0' })).toMatchObject([{ text: '@Bot', addressed: 'mention', inReplyTo: '0' }])
  expect(read({})).toEqual([])
})
