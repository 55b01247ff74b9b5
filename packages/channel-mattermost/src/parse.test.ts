import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type Bot, type Post, parseDeletion, parseEdit, parseMessage, parsePress, postIn, postOf, reactionsOf, readPost } from './parse.ts'
import { MATTERMOST_BOT, MATTERMOST_CHANNEL, MATTERMOST_USER } from './testing/fake.ts'
import { idOf } from './testing/fake-posts.ts'

const BOT: Bot = { account: 'chat.example.com', userId: MATTERMOST_BOT.id, username: 'sluice', threadReplies: true }

const JSON_POST = {
  id: idOf('p', 1),
  create_at: 1_767_225_600_000,
  update_at: 1_767_225_600_000,
  edit_at: 0,
  delete_at: 0,
  user_id: MATTERMOST_USER,
  channel_id: MATTERMOST_CHANNEL,
  root_id: '',
  original_id: '',
  message: 'hi',
  type: '',
  props: {},
  file_ids: [],
}
const parsed = (changes: object, bot: Bot = BOT, isDirect = false) => {
  const post = postOf({ ...JSON_POST, ...changes })
  return post && parseMessage(post, bot, isDirect)
}

test('a message in a channel is answered in a thread on it, unless the configuration or the place says otherwise', () => {
  const { id } = JSON_POST
  expect(parsed({})).toEqual({
    id,
    account: 'chat.example.com',
    sender: MATTERMOST_USER,
    to: { to: MATTERMOST_CHANNEL, thread: id },
    text: 'hi',
    addressed: 'overheard',
    sentAtMs: 1_767_225_600_000,
  })
  expect(parsed({}, { ...BOT, threadReplies: false })?.to).toEqual({ to: MATTERMOST_CHANNEL })
  expect(parsed({}, BOT, true)?.to).toEqual({ to: MATTERMOST_CHANNEL })
  const root = idOf('p', 9)
  expect(parsed({ root_id: root }, { ...BOT, threadReplies: false }, true)?.to).toEqual({ to: MATTERMOST_CHANNEL, thread: root })
})

test.each([
  ['a command opens no thread', '@sluice /stop', {}, undefined],
  ['a command in a thread stays there', '@sluice /stop', { root_id: idOf('p', 9) }, idOf('p', 9)],
  ['other words open one', '@sluice /stop it now', {}, JSON_POST.id],
  ['so does a command to another bot', '@sluice /stop@other_bot', {}, JSON_POST.id],
  ['so do words with the name of another bot', '@other /stop', {}, JSON_POST.id],
])('outside of threads, %s', (_title, message, more, thread) => {
  expect(parsed({ ...more, message })?.to.thread).toBe(thread)
})

test.each([
  ['of the bot', { user_id: MATTERMOST_BOT.id }],
  ['of another bot', { props: { from_bot: 'true' } }],
  ['of a webhook', { props: { from_webhook: true } }],
  ['of a plugin in the name of a person', { props: { from_plugin: 'true' } }],
  ['of the system', { type: 'system_add_to_channel' }],
  ['of a plugin under the name of a bot', { type: 'custom_calls_recording', props: { from_bot: 'true', from_plugin: 'true' } }],
  ['without content', { message: ' \n' }],
  ['with nothing but a mention', { message: '@sluice' }],
  ['that is an earlier version', { original_id: idOf('p', 2) }],
  ['without an id', { id: '' }],
  ['with an id of another form', { id: '../posts' }],
  ['without a time', { create_at: 0 }],
])('a post %s is ignored', (_what, changes) => {
  expect(parsed(changes)).toBeUndefined()
})

test('a post of a plugin is named, and its words are not those of the person', () => {
  const post = { type: 'custom_calls', message: '@sluice approve', props: { from_plugin: 'true' } }
  expect(parsed(post)).toMatchObject({ text: '', addressed: 'overheard', things: [{ kind: 'call', text: '@sluice approve' }] })
  const attachments = [{ title: 'Lunch?' }]
  expect(parsed({ type: 'custom_poll', message: '', props: { attachments } })).toMatchObject({
    text: '',
    things: [{ kind: 'unknown', text: 'custom_poll, Lunch?' }],
  })
  expect(parseEdit(postOf({ ...JSON_POST, ...post, edit_at: JSON_POST.create_at + 1 }) as Post, BOT, false)).toBeUndefined()
})

test('files have their name and type, and a file that is not described has its id', () => {
  const [first, second] = [idOf('f', 1), idOf('f', 2)]
  const metadata = { files: [{ id: first, name: 'voice.ogg', mime_type: 'Audio/OGG; codecs=opus' }] }
  expect(parsed({ message: '', file_ids: [first, second, 7, '../x'], metadata })?.attachments).toEqual([
    { kind: 'audio', name: 'voice.ogg', mime: 'audio/ogg', source: { id: first } },
    { kind: 'file', name: second, source: { id: second } },
  ])
})

describe('no value makes a parser throw', () => {
  const odd = fc.record(
    Object.fromEntries(Object.entries(JSON_POST).map(([key, value]) => [key, fc.oneof(fc.constant(value), fc.jsonValue())])),
    { requiredKeys: [] },
  )
  const metadata = fc.oneof(fc.jsonValue(), fc.record({ reactions: fc.jsonValue(), files: fc.jsonValue() }))

  test('in a post', () => {
    fc.assert(
      fc.property(odd, metadata, fc.jsonValue(), (json, more, reaction) => {
        const post = postOf({ ...json, metadata: more })
        if (!post) return
        for (const parse of [parseMessage, parseEdit, parseDeletion]) parse(post, BOT, false)
        for (const each of [...reactionsOf(post), Object(reaction)]) parsePress(each, post, BOT, false)
      }),
    )
  })

  test('in the data of an event', () => {
    fc.assert(fc.property(fc.oneof(fc.string(), fc.json()), (post) => void postIn({ post })))
  })
})

test('a mention alone counts in a thread', () => {
  expect(parsed({ message: ' @sluice ', root_id: idOf('p', 9) })).toMatchObject({ text: '@sluice', addressed: 'mention' })
})

// https://developers.mattermost.com/integrate/reference/message-attachments/
test('reads the words of a program that begins a thread from its attachments', () => {
  const json = {
    ...{ id: 'p'.repeat(26), create_at: 1_767_225_600_000, user_id: 'u'.repeat(26), channel_id: 'c'.repeat(26), root_id: '' },
    message: '',
    props: {
      from_webhook: 'true',
      override_username: 'alerts',
      attachments: [{ pretext: 'New alert', title: 'Disk full', text: 'on db1' }],
    },
  }
  const post = postOf(json)
  if (!post) throw new Error('The JSON is no post')
  expect(readPost(post, { account: 'a', userId: 'b'.repeat(26), username: 'bot', threadReplies: true })).toMatchObject({
    text: 'New alert\nDisk full\non db1',
    author: { id: '', name: 'alerts' },
    isOfBot: false,
  })
})
