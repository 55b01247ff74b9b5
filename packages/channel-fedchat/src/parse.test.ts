import { expect, test } from 'vitest'
import { parse } from './parse.ts'

const bot = { account: 'a', userId: '@bot:example.org', name: 'Bot', mentionOnly: true, isDirect: () => false, pressed: () => undefined }
const read = (more: object) => {
  const content = { msgtype: 'm.text', body: '@bot:example.org', 'm.mentions': { user_ids: ['@bot:example.org'] }, ...more }
  return parse({ type: 'm.room.message', event_id: '$2', sender: '@ada:example.org', origin_server_ts: 1, content }, '!r', bot)
}

test('a mention alone counts when it quotes a message, and only then', () => {
  const quoting = read({ 'm.relates_to': { 'm.in_reply_to': { event_id: '$1' } } })
  expect(quoting).toMatchObject({ text: '@bot:example.org', addressed: 'mention', inReplyTo: '$1' })
  expect(read({})).toBeUndefined()
})

test('an edit of a poll without content does not empty the poll', () => {
  const content = { 'm.new_content': {}, 'm.relates_to': { rel_type: 'm.replace', event_id: '$1' } }
  expect(parse({ type: 'm.poll.start', event_id: '$2', sender: '@ada:example.org', content }, '!r', bot)).toBeUndefined()
})
