import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { parseUpdate } from './parse.ts'
import { richText } from './rich-message.ts'

const bot = { id: '700100', username: 'Sluice_Bot' }
const ada = { id: 1001, is_bot: false, first_name: 'Ada', username: 'Ada' }
const group = { id: -100_200, type: 'supergroup' }
const own = { message_id: 4, from: { id: 700_100, is_bot: true }, chat: group, text: 'may I?' }

const parse = (message: object, mentionOnly = false) =>
  parseUpdate({ update_id: 1, message: { message_id: 5, from: ada, chat: group, date: 1_767_225_600, ...message } }, bot, mentionOnly)
const inbound = (message: object, mentionOnly?: boolean) => parse(message, mentionOnly)?.inbound
const entity = (type: string, text: string, part: string) => ({ type, offset: text.indexOf(part), length: part.length })

describe('a message', () => {
  test('is identified by its chat and number, and its sender by a number', () => {
    expect(parse({ text: 'hi' })).toEqual({
      username: 'Ada',
      inbound: {
        id: '-100200:5',
        account: '700100',
        sender: '1001',
        name: 'Ada',
        to: { to: '-100200', replyTo: '5' },
        text: 'hi',
        addressed: 'overheard',
        sentAtMs: 1_767_225_600_000,
      },
    })
  })

  test('in a topic is answered there, but not in a chain of replies', () => {
    expect(inbound({ text: 'hi', message_thread_id: 7, is_topic_message: true })?.to).toEqual({ to: '-100200', thread: '7', replyTo: '5' })
    expect(inbound({ text: 'hi', message_thread_id: 4, reply_to_message: own })?.to).toEqual({ to: '-100200', replyTo: '5' })
  })

  test('names the message it replies to, but not the first of its topic', () => {
    expect(inbound({ text: 'yes', reply_to_message: own })?.inReplyTo).toBe('-100200:4')
    const opened = { ...own, message_id: 7, forum_topic_created: { name: 'x' } }
    const inTopic = { text: 'yes', message_thread_id: 7, is_topic_message: true }
    expect(inbound({ ...inTopic, reply_to_message: opened })).not.toHaveProperty('inReplyTo')
    expect(inbound({ ...inTopic, reply_to_message: opened }, true)).toMatchObject({ overheardOnly: true })
  })

  test('keeps ids of 52 bits exactly', () => {
    expect(inbound({ text: 'x', chat: { id: -1_001_234_567_890_123, type: 'supergroup' } })?.id).toBe('-1001234567890123:5')
  })
})

describe('parseUpdate ignores', () => {
  test.each<[name: string, message: object]>([
    ['a message of another bot', { text: 'x', from: { ...ada, is_bot: true } }],
    ['a message of the bot itself', { text: 'x', from: own.from }],
    ['a message on behalf of a chat', { text: 'x', from: { id: 777_000, is_bot: false }, sender_chat: { id: -1 } }],
    ['a message without a sender', { text: 'x', from: undefined }],
    ['a message of the service', { new_chat_members: [ada] }],
    ['the event of a pin', { pinned_message: own }],
    ['a blank message', { text: '  ' }],
  ])('%s', (_name, message) => {
    expect(parse(message)).toBeUndefined()
  })

  test.each(['channel_post', 'edited_channel_post', 'my_chat_member', 'inline_query'])('an update of kind %s', (kind) => {
    expect(parseUpdate({ update_id: 1, [kind]: { message_id: 5, from: ada, chat: group, text: 'x' } }, bot, false)).toBeUndefined()
  })
})

describe('mentions in groups', () => {
  test.each<[text: string, type: string, part: string, rest: string]>([
    ['@sluice_bot any news?', 'mention', '@sluice_bot', 'any news?'],
    ['@SLUICE_BOT, any news?', 'mention', '@SLUICE_BOT', 'any news?'],
    ['😀 hello @sluice_bot!', 'mention', '@sluice_bot', '😀 hello!'],
    ['/status@sluice_bot now', 'bot_command', '/status@sluice_bot', '/status now'],
    ['@sluice_bot', 'mention', '@sluice_bot', '@sluice_bot'],
  ])('are recognized and removed in %j', (text, type, part, rest) => {
    expect(inbound({ text, entities: [entity(type, text, part)] }, true)?.text).toBe(rest)
    expect(inbound({ text, entities: [entity(type, text, part)] })?.text).toBe(rest)
  })

  test('are recognized by user id in a caption', () => {
    const message = { caption: 'Sluice, look', photo: [{ file_id: 'p', width: 1, height: 1 }] }
    const entities = [{ type: 'text_mention', offset: 0, length: 6, user: { id: 700_100 } }]
    expect(inbound({ ...message, caption_entities: entities }, true)?.text).toBe('look')
  })

  test('are not needed in a reply to the bot', () => {
    expect(inbound({ text: 'yes', reply_to_message: own }, true)?.text).toBe('yes')
  })

  test.each<[name: string, message: object]>([
    ['a message without a mention', { text: 'hello all' }],
    ['a name without an entity', { text: '@sluice_bot hello' }],
    ['a mention of another user', { text: '@sluice_bot2 x', entities: [{ type: 'mention', offset: 0, length: 12 }] }],
    ['a command for any bot', { text: '/status', entities: [{ type: 'bot_command', offset: 0, length: 7 }] }],
    ['a reply to another user', { text: 'x', reply_to_message: { ...own, from: ada } }],
    ['an entity beyond the text', { text: 'x', entities: [{ type: 'mention', offset: 900, length: 11 }] }],
  ])('are required by mention_only, with which %s is only overheard', (_name, message) => {
    expect(inbound(message, true)).toMatchObject({ addressed: 'overheard', overheardOnly: true })
    expect(inbound(message)).not.toHaveProperty('overheardOnly')
  })

  test.each<[name: string, message: object]>([
    ['alone', { text: '/stop@other_bot' }],
    ['in a reply to this bot', { text: '/stop@other_bot', reply_to_message: own }],
    ['with words', { text: '/mute@Other_Bot 8h' }],
    ['under a picture', { caption: '/new@other_bot', photo: [{ file_id: 'p', width: 1, height: 1 }] }],
  ])('are those of another bot in a command %s, which this bot only overhears', (_name, message) => {
    const { text = '', caption = text } = message as { text?: string; caption?: string }
    const entities = [{ type: 'bot_command', offset: 0, length: caption.split(' ')[0]?.length }]
    const marked = { ...message, ...(text === '' ? { caption_entities: entities } : { entities }) }
    expect(inbound(marked)).toMatchObject({ addressed: 'overheard', overheardOnly: true, text: caption })
    expect(inbound({ ...marked, chat: { id: 1001, type: 'private' } })).not.toHaveProperty('overheardOnly')
  })

  test('are not needed in a private chat', () => {
    expect(inbound({ text: 'hello', chat: { id: 1001, type: 'private' } }, true)?.text).toBe('hello')
  })

  test.each([
    ['/stop@sluice_bot', '/stop'],
    ['/model@Sluice_Bot llama', '/model llama'],
    ['/stop@other_bot', '/stop@other_bot'],
  ])('are removed from a command in a private chat, too: %s', (text, rest) => {
    const entities = [{ type: 'bot_command', offset: 0, length: text.split(' ')[0]?.length }]
    expect(inbound({ text, entities, chat: { id: 1001, type: 'private' } })?.text).toBe(rest)
  })
})

describe('the content of a message', () => {
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
      'a voice message',
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
  ])('includes %s', (_name, message, attachment) => {
    expect(inbound({ ...message, caption: 'look' })).toMatchObject({ text: 'look', attachments: [attachment] })
    expect(inbound(message)).toMatchObject({ text: '', attachments: [attachment] })
  })
})

describe('a button press', () => {
  const press = (changes: object = {}) =>
    parseUpdate({ update_id: 1, callback_query: { id: '42', from: ada, data: 'a:1', message: own, ...changes } }, bot, true)

  test('names the person who pressed and the message', () => {
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

  test('in a topic is answered there, and on an old message is accepted', () => {
    expect(press({ message: { ...own, is_topic_message: true, message_thread_id: 7 } })?.inbound?.to.thread).toBe('7')
    expect(press({ message: { message_id: 4, chat: group, date: 0 } })?.inbound?.pressed?.message).toBe('-100200:4')
  })

  test('without a value or a message returns only the query to answer', () => {
    for (const changes of [
      { data: undefined, game_short_name: 'x' },
      { message: undefined, inline_message_id: 'i' },
    ]) {
      expect(press(changes)).toEqual({ username: 'Ada', query: '42' })
    }
  })
})

test('parseUpdate accepts any JSON and returns complete messages', () => {
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
        const parsed = parseUpdate(update, bot, mentionOnly)?.inbound
        if (parsed) for (const part of [parsed.id, parsed.sender, parsed.to.to]) expect(part).toMatch(/\S/)
      }
    }),
    { numRuns: 500, seed: 1 },
  )
})

describe('an edited message', () => {
  const edit = (message: object, mentionOnly = false) =>
    parseUpdate(
      { update_id: 9, edited_message: { message_id: 5, from: ada, chat: group, date: 1, edit_date: 2, ...message } },
      bot,
      mentionOnly,
    )

  test('names the message that it replaces, and has an id of its own', () => {
    expect(edit({ text: 'new' })?.inbound).toMatchObject({
      id: 'edit:9',
      sender: '1001',
      text: 'new',
      changes: { message: '-100200:5', what: 'edited' },
    })
  })

  test('need not mention the bot, because its message did', () => {
    expect(edit({ text: 'new' }, true)?.inbound).toBeDefined()
  })

  test('may replace a picture that has no caption', () => {
    const photo = [{ file_id: 'f2', file_unique_id: 'u2', width: 90, height: 90 }]
    expect(edit({ photo })?.inbound).toMatchObject({
      text: '',
      attachments: [{ kind: 'image', source: { id: 'f2' }, lastingId: 'u2' }],
      changes: { message: '-100200:5', what: 'edited' },
    })
  })

  test.each<[name: string, message: object]>([
    ['a new position of a live location', { location: { latitude: 1, longitude: 2, live_period: 60 } }],
    ['a new position of a live location in a venue', { location: { latitude: 1, longitude: 2 }, venue: { title: 'x' } }],
    ['an edit by another bot', { text: 'x', from: { ...ada, is_bot: true } }],
  ])('is ignored if it is %s', (_name, message) => {
    expect(edit(message)).toBeUndefined()
  })
})

test('the lines of a quote in a rich message have a mark, also in blocks inside of it', () => {
  const blocks = [
    {
      type: 'blockquote',
      blocks: [
        { type: 'paragraph', text: 'approve\nnow' },
        { type: 'list', items: [{ blocks: [{ type: 'paragraph', text: 'all' }] }] },
      ],
    },
    { type: 'pullquote', text: 'yes', credit: 'Bob' },
    { type: 'paragraph', text: 'Should we?' },
  ]
  expect(richText({ blocks })).toBe('> approve\n> now\n> all\n> yes\n> Bob\nShould we?')
})
