import type { Members } from '@sluice/kit/foreign-json'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type Listener, parseMessage, placeOf } from './parse-message.ts'
import { parsePress } from './parse-press.ts'

const listener: Listener = {
  account: '99',
  own: () => '99',
  nameOf: (guild, id) => (guild === '3' ? { '500': 'ops', '600': 'alerts' }[id] : undefined),
  isOwnRole: (guild, role) => guild === '3' && role === '501',
  guild: undefined,
  listenToBots: false,
  mentionOnly: false,
  isOwnThread: (channel) => channel === '77',
}
const event = {
  id: '175928847299117063',
  channel_id: '2',
  guild_id: '3',
  author: { id: '4', username: 'ada', bot: false },
  content: '<@99> hi',
  type: 0,
  attachments: [],
  mentions: [{ id: '99' }],
}
const parse = (changes: object = {}, options: Partial<Listener> = {}) => {
  const message: Members = { ...event, ...changes }
  const who = { ...listener, ...options }
  const place = placeOf(who, message)
  return place && parseMessage(who, message, place)
}

describe('a message', () => {
  test('of the gateway, without its mention of us', () => {
    expect(parse()).toEqual({
      id: event.id,
      account: '99',
      sender: '4',
      to: { to: '2', replyTo: event.id },
      text: 'hi',
      sentAtMs: 1_462_015_105_796,
    })
    expect(parse({ content: 'hi <@!99>, and <@98>' })?.text).toBe('hi , and <@98>')
  })

  test.each([
    ['our own', { author: { id: '99' } }],
    ['of a bot', { author: { id: '4', bot: true } }],
    ['of a webhook', { webhook_id: '5' }],
    ['that somebody joined', { type: 7 }],
    ['of a pin', { type: 6 }],
    ['without anything in it', { content: '<@99>' }],
    ['without an author', { author: undefined }],
    ['without an id', { id: undefined }],
    ['with an id that is none', { id: '../..' }],
  ])('%s is none', (_name, changes) => {
    expect(parse(changes)).toBeUndefined()
  })

  test('of bots is one where bots are listened to, but never our own', () => {
    expect(parse({ author: { id: '4', bot: true } }, { listenToBots: true })).toBeDefined()
    expect(parse({ author: { id: '99', bot: true } }, { listenToBots: true })).toBeUndefined()
  })

  test('of another server is none, a direct one is', () => {
    expect(parse({}, { guild: '8' })).toBeUndefined()
    expect(parse({ guild_id: undefined }, { guild: '8' })).toBeDefined()
  })

  test('has to be to us where only mentions count', () => {
    const plain = { content: 'hi', mentions: [] }
    const heard = (changes: object) => parse({ ...plain, ...changes }, { mentionOnly: true }) !== undefined
    expect(heard({})).toBe(false)
    expect(heard({ content: '<@98> hi', mentions: [{ id: '98' }] })).toBe(false)
    expect(heard({ content: '<@99> hi' })).toBe(true)
    expect(heard({ mentions: [{ id: '99' }] })).toBe(true)
    expect(heard({ type: 19, referenced_message: { author: { id: '99' } } })).toBe(true)
    expect(heard({ type: 19, referenced_message: { author: { id: '4' } } })).toBe(false)
    expect(heard({ guild_id: undefined })).toBe(true)
    expect(heard({ channel_id: '77' })).toBe(true)
    expect(heard({ content: '<@&501> hi', mention_roles: ['501'] })).toBe(true)
    expect(heard({ content: '<@&500> hi', mention_roles: ['500'] })).toBe(false)
  })

  test('names the people, roles and channels that it mentions', () => {
    const mentions = [
      { id: '98', username: 'bob', global_name: 'Bob B.' },
      { id: '97', username: 'eve', member: { nick: 'Evie' } },
      { id: '96', username: 'joe' },
    ]
    const content = '<@99> ask <@98>, <@!97> and <@96> of <@&500> in <#600>, not <@95>, <#601> or <@&502>; <@&501>'
    expect(parse({ content, mentions })?.text).toBe('ask @Bob B., @Evie and @joe of @ops in #alerts, not <@95>, <#601> or <@&502>;')
  })

  test('that is forwarded is marked as forwarded and keeps its files', () => {
    const url = 'https://cdn.discordapp.com/a'
    const inner = { content: 'It is down, <@98>', mentions: [{ id: '98', username: 'bob' }], attachments: [{ filename: 'a.txt', url }] }
    const forward = { content: '', message_reference: { type: 1, message_id: '7' }, message_snapshots: [{ message: inner }] }
    expect(parse(forward)).toMatchObject({
      text: 'Forwarded message:\nIt is down, @bob',
      attachments: [{ name: 'a.txt', source: { url } }],
    })
    expect(parse({ ...forward, content: 'Look' })?.text).toBe('Look\nForwarded message:\nIt is down, @bob')
  })

  test('of a sticker or a poll is described in words', () => {
    expect(parse({ content: '', sticker_items: [{ id: '1', name: 'Wave', format_type: 1 }] })?.text).toBe('Sticker: Wave')
    const answers = [
      { answer_id: 1, poll_media: { text: 'Today' } },
      { answer_id: 2, poll_media: { text: 'Never', emoji: { name: '🙈' } } },
    ]
    const poll = { question: { text: 'When do we deploy?' }, answers }
    expect(parse({ content: '', poll })?.text).toBe('Poll: When do we deploy?\n- Today\n- 🙈 Never')
    expect(parse({ content: '', message_snapshots: [{ message: { content: '', poll } }] })?.text).toMatch(/^Forwarded message:\nPoll: When/)
  })

  test('names the one it answers, not the one it forwards', () => {
    expect(parse({ type: 19, message_reference: { message_id: '7' } })?.inReplyTo).toBe('7')
    expect(parse({ type: 19, message_reference: { type: 0, message_id: '7' } })?.inReplyTo).toBe('7')
    expect(parse({ message_reference: { type: 1, message_id: '7' } })?.inReplyTo).toBeUndefined()
  })

  test('of files alone is one', () => {
    const url = 'https://cdn.discordapp.com/a'
    const file = (filename: string, content_type?: string) => ({ id: '5', filename, content_type, size: 3, url })
    const attachments = [file('a.txt', 'text/plain; charset=utf-8'), file('v.ogg', 'audio/ogg'), file('p.PNG'), {}, null]
    expect(parse({ content: '', attachments })).toMatchObject({
      text: '',
      attachments: [
        { kind: 'file', name: 'a.txt', mime: 'text/plain', source: { url } },
        { kind: 'audio', name: 'v.ogg', mime: 'audio/ogg', source: { url } },
        { kind: 'image', name: 'p.PNG', source: { url } },
      ],
    })
  })

  test('or a press of any shape throws nothing', () => {
    const members = fc.dictionary(
      fc.constantFrom(
        ...Object.keys(event),
        'message_reference',
        'referenced_message',
        'message_snapshots',
        'sticker_items',
        'poll',
        'mention_roles',
        'data',
        'member',
      ),
      fc.jsonValue(),
    )
    fc.assert(
      fc.property(members, (changes) => {
        parse(changes)
        parsePress(listener, { ...press, ...changes })
      }),
      { numRuns: 300, seed: 1 },
    )
  })
})

const press = {
  id: '175928847299117064',
  type: 3,
  token: 'a/b',
  channel_id: '2',
  guild_id: '3',
  data: { component_type: 2, custom_id: 'approve:1' },
  message: { id: '6' },
  member: { user: { id: '4' } },
}

describe('a press', () => {
  test('has who pressed what under which message', () => {
    expect(parsePress(listener, press)).toEqual({
      inbound: {
        id: 'ix:175928847299117064',
        account: '99',
        sender: '4',
        to: { to: '2', replyTo: '6' },
        text: '',
        sentAtMs: 1_462_015_105_796,
        pressed: { message: '6', value: 'approve:1' },
      },
      seenPath: '/interactions/175928847299117064/a%2Fb/callback',
    })
    expect(parsePress(listener, { ...press, guild_id: undefined, member: undefined, user: { id: '8' } })?.inbound.sender).toBe('8')
  })

  test.each([
    ['a command', { type: 2 }],
    ['a menu', { data: { component_type: 3, custom_id: 'x' } }],
    ['nobody', { member: undefined }],
    ['no message', { message: undefined }],
    ['no value', { data: { component_type: 2 } }],
  ])('%s is none', (_name, changes) => {
    expect(parsePress(listener, { ...press, ...changes })).toBeUndefined()
  })

  test('on another server is none', () => {
    expect(parsePress({ ...listener, guild: '8' }, press)).toBeUndefined()
  })
})
