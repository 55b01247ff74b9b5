/** What people can send on the platform, as lines of an IRC server. */
import { members, text } from '@sluice/kit/foreign-json'
import type { ArrivalSubject, RecordedArrival } from '@sluice/testkit/channel'
import * as v from 'valibot'
import { ircSection } from '../config.ts'
import { parse } from '../parse.ts'
import { parseLine } from '../wire.ts'

const PRIVMSG = 'https://modern.ircdocs.horse/#privmsg-message'
const CTCP = 'https://modern.ircdocs.horse/ctcp'
const DCC = 'https://modern.ircdocs.horse/dcc'
const TAGS = '@account=ada;msgid=m1;time=2026-01-01T00:00:00.000Z'
const config = v.parse(ircSection.schema, { server: 'irc.example.org', nickname: 'Sluice', channels: ['#ops'] })
const bot = { account: 'sluice@irc.example.org', nick: 'Sluice', config, isChannel: (target: string) => target.startsWith('#') }

const arrival = (what: string, line: string, expect: RecordedArrival['expect'], source = PRIVMSG): RecordedArrival => ({
  what,
  source,
  payload: { line },
  expect,
})
const direct = (words: string, tags = TAGS) => `${tags} :Ada!ada@host.example PRIVMSG Sluice :${words}`
const room = (words: string) => `${TAGS} :Ada!ada@host.example PRIVMSG #ops :${words}`

export const ircArrivals: ArrivalSubject = {
  parse(payload) {
    const line = parseLine(text(members(payload).line))
    return [(line && parse(line, bot, () => 'once:1')) ?? []].flat()
  },
  never: {
    quoted: 'IRC sends only the id of the message that is answered; the daemon adds the words that it knows',
    forwarded: 'IRC has no forwards',
  },
  recorded: [
    arrival('a text', direct('hi'), { id: 'm1', sender: 'account:ada', text: 'hi', addressed: 'direct' }),
    arrival('a text of somebody who is not logged in', direct('hi', '@msgid=m1'), { sender: 'ada', unverified: true, text: 'hi' }),
    arrival('a text in a channel', room('lunch?'), { text: 'lunch?', addressed: 'overheard' }),
    arrival('a text to the bot', room('sluice: hi'), { text: 'hi', addressed: 'mention' }),
    arrival(
      'a text with formatting',
      direct('\x02bold\x02 \x0304,12red\x03 \x1dslanted'),
      { text: 'bold red slanted' },
      'https://modern.ircdocs.horse/formatting',
    ),
    arrival('an action', room('\x01ACTION waves\x01'), { text: '* waves' }, CTCP),
    arrival('an action whose last character the server cut', room('\x01ACTION waves'), { text: '* waves' }, CTCP),
    arrival(
      'a reply',
      `@+draft/reply=m0;msgid=m1 :Ada!ada@host.example PRIVMSG #ops :yes`,
      { text: 'yes', inReplyTo: 'm0' },
      'https://ircv3.net/specs/client-tags/reply',
    ),
    arrival(
      'an offer of a file',
      direct('\x01DCC SEND "my notes.txt" 2130706433 5000 1024\x01'),
      { text: '', things: [{ kind: 'unknown', text: 'DCC SEND, my notes.txt' }] },
      DCC,
    ),
    arrival(
      'an offer of a file in a channel',
      room('\x01DCC SEND a.txt 2130706433 5000 1024\x01'),
      { addressed: 'overheard', things: [{ kind: 'unknown', text: 'DCC SEND, a.txt' }] },
      DCC,
    ),
    arrival(
      'an offer of a connection',
      direct('\x01DCC CHAT chat 2130706433 5000\x01'),
      { things: [{ kind: 'unknown', text: 'DCC CHAT' }] },
      DCC,
    ),
    arrival(
      'a deletion',
      `${TAGS} :Ada!ada@host.example REDACT #ops m0 :a mistake`,
      { id: 'redact:m0', changes: { message: 'm0', what: 'deleted' } },
      'https://ircv3.net/specs/extensions/message-redaction',
    ),
  ],
}
