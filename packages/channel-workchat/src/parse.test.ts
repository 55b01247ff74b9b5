import { expect, test } from 'vitest'
import { parseMessage } from './parse.ts'

const bot = { account: 'cli_1', openId: 'ou_bot', mentionOnly: true, threadReplies: false }
const message = {
  ...{ message_id: 'om_2', chat_id: 'oc_1', chat_type: 'group', message_type: 'text', create_time: '1767225600000' },
  content: '{"text":"@_user_1"}',
  mentions: [{ key: '@_user_1', id: { open_id: 'ou_bot' }, name: 'Sluice' }],
}
const read = (more: object, changes: object = {}) =>
  parseMessage(
    { sender: { sender_id: { open_id: 'ou_ada' }, sender_type: 'user' }, message: { ...message, ...more } },
    { ...bot, ...changes },
  )

test('a mention alone counts when it quotes a message, and only then', () => {
  expect(read({ parent_id: 'om_1' })).toMatchObject({ text: '@Sluice', addressed: 'mention', inReplyTo: 'om_1' })
  expect(read({})).toBeUndefined()
})

test.each([
  ['a command opens no thread', '@_user_1 /stop', {}, undefined],
  ['a command in a thread stays there', '@_user_1 /stop', { thread_id: 'omt_1', root_id: 'om_1' }, 'om_1'],
  ['other words open one', '@_user_1 /stop it now', {}, 'om_2'],
])('with thread_replies, %s', (_title, text, more, thread) => {
  expect(read({ ...more, content: JSON.stringify({ text }) }, { threadReplies: true })?.to.thread).toBe(thread)
})
