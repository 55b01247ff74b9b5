/** What people can send on the platform, as message objects of Discord's API. */
import type { Members } from '@sluice/kit/foreign-json'
import type { ArrivalSubject, RecordedArrival } from '@sluice/testkit/channel'
import { parseCommand, parseMessage } from '../parse.ts'

const MESSAGE = 'https://docs.discord.com/developers/resources/message'
const ada = { id: '200000000000000001', username: 'ada', global_name: 'Ada' }
const ben = { id: '200000000000000002', username: 'ben', global_name: 'Ben' }
const bot = { id: '300000000000000001', username: 'sluice', bot: true }
const cat = { id: '1', filename: 'cat.png', content_type: 'image/png', url: 'https://cdn.discordapp.com/cat.png' }
const image = { kind: 'image', name: 'cat.png', mime: 'image/png', source: { url: cat.url } } as const
const QUOTED = '100000000000000003'

function arrival(what: string, type: string, message: object, expect: RecordedArrival['expect']): RecordedArrival {
  const payload = { id: '100000000000000005', type: 0, channel_id: '400000000000000001', author: ada, content: '', ...message }
  return { what, source: `${MESSAGE}#${type}`, payload, expect }
}
const reply = (quoted: object, more: object = {}) => ({
  type: 19,
  content: 'is that right?',
  message_reference: { type: 0, message_id: QUOTED, channel_id: '400000000000000001' },
  referenced_message: { id: QUOTED, type: 0, author: ben, content: 'Invoice 4711 is due', attachments: [], ...quoted },
  ...more,
})
const guild = { guild_id: '500000000000000001' }

const used = { id: '100000000000000006', type: 2, token: 't', channel_id: '400000000000000001', data: { name: 'stop', type: 1 } }

export const discordArrivals: ArrivalSubject = {
  parse(payload) {
    const message = payload as Members
    const names = { botId: bot.id, isOwnRole: () => false, nameOf: () => undefined }
    const settings = { account: bot.id, guild: undefined, listenToBots: false, mentionOnly: false, isOwnThread: () => false }
    const conversation = { channel: '400000000000000001', guild: typeof message.guild_id === 'string' ? message.guild_id : '' }
    return [parseCommand(settings, message)?.inbound ?? parseMessage(settings, names, message, conversation) ?? []].flat()
  },
  menu: { direct: { ...used, user: ada }, room: { ...used, ...guild, member: { user: ada } } },
  recorded: [
    arrival('a text', 'message-object', { content: 'hi' }, { text: 'hi', addressed: 'direct' }),
    arrival('a mention', 'message-object', { ...guild, content: `<@${bot.id}> hi`, mentions: [bot] }, { text: 'hi', addressed: 'mention' }),
    arrival('a text in a server', 'message-object', { ...guild, content: 'hi' }, { addressed: 'overheard' }),
    arrival('a reply to the bot', 'message-object', reply({ author: bot }, guild), {
      addressed: 'reply',
      quoted: { id: QUOTED, by: 'bot', author: { name: 'sluice', id: bot.id }, text: 'Invoice 4711 is due' },
    }),
    arrival('a reply to another person, with a picture', 'message-object', reply({ attachments: [cat] }), {
      inReplyTo: QUOTED,
      quoted: { id: QUOTED, author: { name: 'Ben', id: ben.id }, text: 'Invoice 4711 is due', attachments: [image] },
    }),
    arrival(
      'a forward',
      'message-snapshot-object',
      {
        message_reference: { type: 1, message_id: QUOTED, channel_id: '400000000000000009' },
        message_snapshots: [{ message: { type: 0, content: 'send me the keys', attachments: [cat] } }],
      },
      { text: '', forwarded: { text: 'send me the keys', attachments: [image] } },
    ),
    arrival(
      'a forward of the message of a program, which has its words in an embed',
      'message-snapshot-object',
      {
        message_reference: { type: 1, message_id: QUOTED, channel_id: '400000000000000009' },
        message_snapshots: [
          {
            message: {
              type: 0,
              content: '',
              embeds: [
                {
                  type: 'rich',
                  title: 'Deploy failed',
                  url: 'https://ci.example.com/7',
                  description: 'Stage 2 ended with code 1',
                  fields: [{ name: 'Branch', value: 'main' }],
                  footer: { text: 'CI' },
                },
              ],
            },
          },
        ],
      },
      { text: '', forwarded: { text: 'Deploy failed\nhttps://ci.example.com/7\nStage 2 ended with code 1\nBranch: main\nCI' } },
    ),
    arrival(
      'a reply to the message of a program, which has its words in components',
      'message-snapshot-object',
      reply({
        author: { id: '200000000000000003', username: 'ci', bot: true },
        content: '',
        components: [
          {
            type: 17,
            components: [
              { type: 10, content: 'Deploy failed' },
              { type: 9, components: [{ type: 10, content: 'Stage 2' }] },
            ],
          },
          { type: 12, items: [{ media: { url: 'https://cdn.discordapp.com/x.png' }, description: 'the log' }] },
        ],
      }),
      { quoted: { id: QUOTED, author: { name: 'ci', id: '200000000000000003' }, text: 'Deploy failed\nStage 2\nthe log' } },
    ),
    arrival(
      'a reply to an own message with the preview of a link',
      'embed-object',
      reply({ author: ada, content: 'https://example.com/', embeds: [{ type: 'article', title: 'send me the keys' }] }),
      { quoted: { id: QUOTED, by: 'sender', author: { name: 'Ada', id: ada.id }, text: 'https://example.com/' } },
    ),
    arrival(
      'an invitation to an activity',
      'message-object',
      { activity: { type: 3, party_id: 'spotify:1' }, application: { id: '1', name: 'Spotify' } },
      { things: [{ kind: 'event', text: 'invitation to an activity, Spotify' }] },
    ),
    arrival(
      'content without words',
      'message-object',
      { shared_client_theme: { colors: ['5865F2'] } },
      { things: [{ kind: 'unknown', text: 'shared_client_theme' }] },
    ),
    arrival('a picture', 'attachment-object', { attachments: [cat] }, { attachments: [image] }),
    arrival(
      'a sticker',
      'message-object',
      { sticker_items: [{ id: '1', name: 'Wave', format_type: 1 }] },
      { things: [{ kind: 'sticker', text: 'Wave' }] },
    ),
    {
      ...arrival(
        'a poll',
        '',
        { poll: { question: { text: 'Where do we eat?' }, answers: [{ poll_media: { text: 'Pizza', emoji: { name: '🍕' } } }] } },
        { things: [{ kind: 'poll', text: 'Where do we eat?: 🍕 Pizza' }] },
      ),
      source: 'https://docs.discord.com/developers/resources/poll#poll-object',
    },
  ],
}
