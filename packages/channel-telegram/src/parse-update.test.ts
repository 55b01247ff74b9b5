import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { parseUpdate } from './parse-update.ts'

const bot = { id: '700100', username: 'Sluice_Bot' }
const ada = { id: 1001, is_bot: false, first_name: 'Ada', username: 'Ada' }
const group = { id: -100_200, type: 'supergroup' }
const own = { message_id: 4, from: { id: 700_100, is_bot: true }, chat: group, text: 'may I?' }

const parse = (message: object, mentionOnly = false) =>
  parseUpdate({ update_id: 1, message: { message_id: 5, from: ada, chat: group, date: 1_767_225_600, ...message } }, { bot, mentionOnly })
const inbound = (message: object, mentionOnly?: boolean) => parse(message, mentionOnly)?.inbound
const entity = (type: string, text: string, part: string) => ({ type, offset: text.indexOf(part), length: part.length })

describe('what somebody writes', () => {
  test('has the id of its message in its chat, and the sender’s number as the sender', () => {
    expect(parse({ text: 'hi' })).toEqual({
      username: 'Ada',
      inbound: {
        id: '-100200:5',
        account: '700100',
        sender: '1001',
        to: { to: '-100200', replyTo: '5' },
        text: 'hi',
        sentAtMs: 1_767_225_600_000,
      },
    })
  })

  test('in a topic is answered in it; a chain of replies is no topic', () => {
    expect(inbound({ text: 'hi', message_thread_id: 7, is_topic_message: true })?.to).toEqual({ to: '-100200', thread: '7', replyTo: '5' })
    expect(inbound({ text: 'hi', message_thread_id: 4, reply_to_message: own })?.to).toEqual({ to: '-100200', replyTo: '5' })
  })

  test('names the message it answers as `Sent.id` does; what opened the topic is not answered', () => {
    expect(inbound({ text: 'yes', reply_to_message: own })?.inReplyTo).toBe('-100200:4')
    const opened = { ...own, message_id: 7, forum_topic_created: { name: 'x' } }
    const inTopic = { text: 'yes', message_thread_id: 7, is_topic_message: true }
    expect(inbound({ ...inTopic, reply_to_message: opened })).not.toHaveProperty('inReplyTo')
    expect(inbound({ ...inTopic, reply_to_message: opened }, true)).toBeUndefined()
  })

  test('of a group that is migrated, with ids of 52 bits, is kept exactly', () => {
    expect(inbound({ text: 'x', chat: { id: -1_001_234_567_890_123, type: 'supergroup' } })?.id).toBe('-1001234567890123:5')
  })
})

describe('what is no message to us', () => {
  test.each<[name: string, message: object]>([
    ['of a bot', { text: 'x', from: { ...ada, is_bot: true } }],
    ['of the bot itself', { text: 'x', from: own.from }],
    ['of a chat, under the number of the service', { text: 'x', from: { id: 777_000, is_bot: false }, sender_chat: { id: -1 } }],
    ['of nobody', { text: 'x', from: undefined }],
    ['of the service', { new_chat_members: [ada] }],
    ['pinned', { pinned_message: own }],
    ['blank', { text: '  ' }],
  ])('%s', (_name, message) => {
    expect(parse(message)).toBeUndefined()
  })

  test.each(['edited_message', 'channel_post', 'edited_channel_post', 'my_chat_member', 'inline_query'])('an update of kind %s', (kind) => {
    expect(
      parseUpdate({ update_id: 1, [kind]: { message_id: 5, from: ada, chat: group, text: 'x' } }, { bot, mentionOnly: false }),
    ).toBeUndefined()
  })
})

describe('mentions in groups', () => {
  test.each<[text: string, type: string, part: string, rest: string]>([
    ['@sluice_bot what is new?', 'mention', '@sluice_bot', 'what is new?'],
    ['@SLUICE_BOT, what is new?', 'mention', '@SLUICE_BOT', 'what is new?'],
    ['😀 hello @sluice_bot!', 'mention', '@sluice_bot', '😀 hello!'],
    ['/status@sluice_bot now', 'bot_command', '/status@sluice_bot', '/status now'],
    ['@sluice_bot', 'mention', '@sluice_bot', '@sluice_bot'],
  ])('%j is meant for the bot', (text, type, part, rest) => {
    expect(inbound({ text, entities: [entity(type, text, part)] }, true)?.text).toBe(rest)
    expect(inbound({ text, entities: [entity(type, text, part)] })?.text).toBe(rest)
  })

  test('a mention by number, in a caption, counts too', () => {
    const message = { caption: 'Sluice, look', photo: [{ file_id: 'p', width: 1, height: 1 }] }
    const entities = [{ type: 'text_mention', offset: 0, length: 6, user: { id: 700_100 } }]
    expect(inbound({ ...message, caption_entities: entities }, true)?.text).toBe('look')
  })

  test('an answer to the bot is meant for it', () => {
    expect(inbound({ text: 'yes', reply_to_message: own }, true)?.text).toBe('yes')
  })

  test.each<[name: string, message: object]>([
    ['no mention', { text: 'hello all' }],
    ['a name without its entity', { text: '@sluice_bot hello' }],
    ['somebody else', { text: '@sluice_bot2 x', entities: [{ type: 'mention', offset: 0, length: 12 }] }],
    ['a command for any bot', { text: '/status', entities: [{ type: 'bot_command', offset: 0, length: 7 }] }],
    ['an answer to somebody else', { text: 'x', reply_to_message: { ...own, from: ada } }],
    ['an entity beyond the text', { text: 'x', entities: [{ type: 'mention', offset: 900, length: 11 }] }],
  ])('§2.3 mention_only leaves out %s', (_name, message) => {
    expect(inbound(message, true)).toBeUndefined()
    expect(inbound(message)).toBeDefined()
  })

  test('in a private chat nobody has to be named', () => {
    expect(inbound({ text: 'hello', chat: { id: 1001, type: 'private' } }, true)?.text).toBe('hello')
  })
})

describe('files', () => {
  test.each<[name: string, message: object, attachment: object]>([
    [
      'a photo, the largest of its sizes',
      {
        photo: [
          { file_id: 's', width: 90, height: 60 },
          { file_id: 'l', width: 900, height: 600 },
          { file_id: 'm', width: 300, height: 200 },
        ],
      },
      { kind: 'image', name: 'photo.jpg', mime: 'image/jpeg', source: { id: 'l' } },
    ],
    [
      'a voice',
      { voice: { file_id: 'v', mime_type: 'audio/ogg' } },
      { kind: 'audio', name: 'voice.ogg', mime: 'audio/ogg', source: { id: 'v' } },
    ],
    ['music', { audio: { file_id: 'a', file_name: 'a.mp3' } }, { kind: 'audio', name: 'a.mp3', source: { id: 'a' } }],
    ['a video', { video: { file_id: 'v' } }, { kind: 'video', name: 'video.mp4', source: { id: 'v' } }],
    ['a round video', { video_note: { file_id: 'v' } }, { kind: 'video', name: 'video.mp4', source: { id: 'v' } }],
    [
      'an animation, once',
      { animation: { file_id: 'a' }, document: { file_id: 'a' } },
      { kind: 'video', name: 'animation.mp4', source: { id: 'a' } },
    ],
    ['a document', { document: { file_id: 'd', file_name: '../a.pdf' } }, { kind: 'file', name: '../a.pdf', source: { id: 'd' } }],
    [
      'a picture sent as a document',
      { document: { file_id: 'd', file_name: 'a.png', mime_type: 'image/png' } },
      { kind: 'image', name: 'a.png', mime: 'image/png', source: { id: 'd' } },
    ],
  ])('%s', (_name, message, attachment) => {
    expect(inbound({ ...message, caption: 'look' })).toMatchObject({ text: 'look', attachments: [attachment] })
    expect(inbound(message)).toMatchObject({ text: '', attachments: [attachment] })
  })

  test('places, contacts and stickers are said in words', () => {
    expect(inbound({ location: { latitude: 52.5, longitude: 13.4 } })?.text).toBe('Location: 52.5, 13.4')
    const venue = { title: 'Café', address: 'Main Street 1', location: { latitude: 52.5, longitude: 13.4 } }
    expect(inbound({ venue, location: venue.location })?.text).toBe('Location: Café, Main Street 1 (52.5, 13.4)')
    expect(inbound({ contact: { first_name: 'Bob', phone_number: '+15550001' } })?.text).toBe('Contact: Bob, +15550001')
    expect(inbound({ sticker: { file_id: 's', emoji: '👍' } })?.text).toBe('👍')
  })
})

describe('a pressed button', () => {
  const press = (changes: object = {}) =>
    parseUpdate(
      { update_id: 1, callback_query: { id: '42', from: ada, data: 'a:1', message: own, ...changes } },
      { bot, mentionOnly: true },
    )

  test('is of whoever pressed it, on the message as `Sent.id` names it', () => {
    expect(press()).toEqual({
      username: 'Ada',
      query: '42',
      inbound: {
        id: 'cb:42',
        account: '700100',
        sender: '1001',
        to: { to: '-100200', replyTo: '4' },
        text: '',
        pressed: { message: '-100200:4', value: 'a:1' },
      },
    })
  })

  test('in a topic is answered there, and on a message too old to be shown it still counts', () => {
    expect(press({ message: { ...own, is_topic_message: true, message_thread_id: 7 } })?.inbound?.to.thread).toBe('7')
    expect(press({ message: { message_id: 4, chat: group, date: 0 } })?.inbound?.pressed?.message).toBe('-100200:4')
  })

  test('without a value or a message is only to be answered', () => {
    for (const changes of [
      { data: undefined, game_short_name: 'x' },
      { message: undefined, inline_message_id: 'i' },
    ]) {
      expect(press(changes)).toEqual({ username: 'Ada', query: '42' })
    }
  })
})

test('whatever the JSON is, nothing is thrown, and a message is whole', () => {
  const names = ['message', 'callback_query', 'from', 'chat', 'id', 'message_id', 'text', 'entities', 'photo', 'data', 'reply_to_message']
  const { json } = fc.letrec((tie) => ({
    json: fc.oneof(
      { maxDepth: 5 },
      fc.constantFrom(null, true, 0, -1, 1.5, 2 ** 60, '', 'x', 1001),
      fc.array(tie('json'), { maxLength: 3 }),
      fc.dictionary(fc.constantFrom(...names), tie('json'), { maxKeys: 6 }),
    ),
  }))
  fc.assert(
    fc.property(json, json, fc.boolean(), (message, callback_query, mentionOnly) => {
      for (const update of [message, { message }, { callback_query }]) {
        const parsed = parseUpdate(update, { bot, mentionOnly })?.inbound
        if (parsed) for (const part of [parsed.id, parsed.sender, parsed.to.to]) expect(part).toMatch(/\S/)
      }
    }),
    { numRuns: 500, seed: 1 },
  )
})
