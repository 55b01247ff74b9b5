import { testHost } from '@sluice/testkit/host'
import fc from 'fast-check'
import * as v from 'valibot'
import { expect, test } from 'vitest'
import { ircSection } from './config.ts'
import feature from './index.ts'
import { parse } from './parse.ts'
import { parseLine } from './wire.ts'

const section = { server: 'irc.example.org', nickname: 'Sluice', channels: ['#ops'] }
const config = v.parse(ircSection.schema, section)
const read = (text: string, more: object = {}) => {
  const line = parseLine(text)
  const bot = { account: 'a', nick: 'Sluice', config: { ...config, ...more }, isChannel: (target: string) => target.startsWith('#') }
  return line && parse(line, bot, () => 'once:1')
}

test('the account of a person who is logged in is the sender', () => {
  expect(read('@account=Ada;msgid=m1;time=2026-01-01T00:00:00.000Z :x!u@h PRIVMSG #ops :sluice: hi')).toEqual({
    id: 'm1',
    account: 'a',
    sender: 'account:ada',
    name: 'x',
    to: { to: '#ops', replyTo: 'm1', more: { nick: 'x' } },
    addressed: 'mention',
    text: 'hi',
    sentAtMs: Date.UTC(2026, 0, 1),
  })
})

test('a nick alone is not verified, and a message without an id gets one', () => {
  expect(read(':Ada!u@h PRIVMSG sluice :hi')).toEqual({
    id: 'once:1',
    account: 'a',
    sender: 'ada',
    name: 'Ada',
    unverified: true,
    to: { to: 'Ada' },
    addressed: 'direct',
    text: 'hi',
  })
})

test('an allowed name covers the nick and the account of the same name, but an allowed account no nick', () => {
  const [channel] = feature.build(testHost(), v.parse(ircSection.schema, section)).channels ?? []
  expect(channel?.matches?.('Ada', 'account:ada')).toBe(true)
  expect(channel?.matches?.('account:ada', 'ada')).toBe(false)
  expect(channel?.normalise?.('account:Ada')).toBe('account:ada')
})

test('an action and an answer are read, and a deletion names its message', () => {
  expect(read(':ada!u@h PRIVMSG #ops :\x01ACTION waves\x01')?.text).toBe('* waves')
  expect(read('@+draft/reply=m0 :ada!u@h PRIVMSG #ops :yes')?.inReplyTo).toBe('m0')
  expect(read(':ada!u@h REDACT #ops m1 :oops')).toMatchObject({ id: 'redact:m1', sender: '', changes: { message: 'm1', what: 'deleted' } })
})

test.each([
  ':sluice!u@h PRIVMSG #ops :own',
  ':ada!u@h NOTICE #ops :notice',
  ':NickServ!s@services PRIVMSG Sluice :identify',
  ':irc.example.org PRIVMSG Sluice :from the server',
  '@bot :other!u@h PRIVMSG #ops :from a bot',
  ':ada!u@h PRIVMSG Sluice :\x01VERSION\x01',
  ':ada!u@h PRIVMSG somebody :hi',
  ':ada!u@h PRIVMSG #ops :  ',
  ':ada!u@h PRIVMSG #ops',
  ':ada!u@h REDACT #ops',
])('%j is ignored', (line) => {
  expect(read(line)).toBeUndefined()
})

test('with mention_only, a channel needs the nick and a direct message does not', () => {
  const said = ':ada!u@h PRIVMSG #ops :hi'
  expect([read(said), read(said, { mention_only: true })]).toMatchObject([{ addressed: 'overheard' }, { overheardOnly: true }])
  expect(read(said)).not.toHaveProperty('overheardOnly')
  expect(read(':ada!u@h PRIVMSG #ops :hi sluice', { mention_only: true })).toMatchObject({ text: 'hi sluice', addressed: 'mention' })
  expect(read(':ada!u@h PRIVMSG Sluice :hi', { mention_only: true })).toMatchObject({ text: 'hi', addressed: 'direct' })
})

test('any line is parsed without an error', () => {
  const words = fc.constantFrom(
    '@msgid=1 ',
    '@account= ',
    ':ada!u@h ',
    'PRIVMSG ',
    'REDACT ',
    '#ops ',
    'Sluice ',
    ':',
    '\x01ACTION ',
    '\x03',
    'x',
  )
  fc.assert(fc.property(fc.array(words), (parts) => void read(parts.join(''))))
})

test('the name of the bot alone counts when it replies to a message, and only then', () => {
  expect(read('@msgid=m2;+draft/reply=m1 :ada!u@h PRIVMSG #ops :sluice:')).toMatchObject({ text: 'sluice:', inReplyTo: 'm1' })
  expect(read('@msgid=m2 :ada!u@h PRIVMSG #ops :sluice:')).toBeUndefined()
})
