/** What people can send on the platform, as posts of Mattermost. */
import type { ArrivalSubject, RecordedArrival } from '@sluice/testkit/channel'
import { parseMessage, postOf } from '../parse.ts'

/** The post of a call. */
const CALLS = 'https://github.com/mattermost/mattermost-plugin-calls/blob/main/server/utils.go'
const POST = 'https://github.com/mattermost/mattermost/blob/master/server/public/model/post.go'

function arrival(what: string, post: object, expect: RecordedArrival['expect']): RecordedArrival {
  const common = {
    id: 'p'.repeat(26),
    create_at: 1_767_225_600_000,
    edit_at: 0,
    delete_at: 0,
    user_id: 'u'.repeat(26),
    channel_id: 'c'.repeat(26),
    root_id: '',
    original_id: '',
    type: '',
    props: {},
    metadata: {},
  }
  return { what, source: POST, payload: { ...common, ...post }, expect }
}
const file = 'f'.repeat(26)

export const mattermostArrivals: ArrivalSubject = {
  parse(payload) {
    const post = postOf(payload)
    const bot = { account: 'a', userId: 'b'.repeat(26), username: 'bot', threadReplies: true }
    return [(post && parseMessage(post, bot, false)) ?? []].flat()
  },
  never: {
    quoted: 'Mattermost sends the post that begins a thread only on request; connection.test.ts tests it',
  },
  recorded: [
    arrival('a text', { message: 'hi' }, { text: 'hi', addressed: 'overheard' }),
    arrival('a mention', { message: '@bot hi' }, { text: 'hi', addressed: 'mention' }),
    arrival('a /me post', { message: '*waves at the bot*', type: 'me', props: { message: 'waves' } }, { text: '*waves at the bot*' }),
    arrival(
      'a forwarded post',
      {
        message: 'is this right?\n\nhttps://chat.example.com/ops/pl/qqqqqqqqqqqqqqqqqqqqqqqqqq',
        metadata: {
          embeds: [
            {
              type: 'permalink',
              data: { post_id: 'q'.repeat(26), post: { message: 'ticket 4711 burns' }, channel_display_name: 'Ops', channel_type: 'O' },
            },
          ],
        },
      },
      {
        text: 'is this right?\n\nhttps://chat.example.com/ops/pl/qqqqqqqqqqqqqqqqqqqqqqqqqq',
        forwarded: { from: { kind: 'room', name: 'Ops' }, text: 'ticket 4711 burns' },
      },
    ),
    arrival(
      'a forwarded post of a program, which has its words in attachments',
      {
        message: 'https://chat.example.com/ops/pl/qqqqqqqqqqqqqqqqqqqqqqqqqq',
        metadata: {
          embeds: [
            {
              type: 'permalink',
              data: {
                post_id: 'q'.repeat(26),
                post: {
                  message: '',
                  props: {
                    from_webhook: 'true',
                    attachments: [
                      { fallback: 'Disk full', title: 'Disk full', text: 'on db1', fields: [{ title: 'Left', value: 2, short: true }] },
                      { fallback: 'Second alert' },
                    ],
                  },
                },
                channel_display_name: 'Ops',
              },
            },
          ],
        },
      },
      { forwarded: { from: { kind: 'room', name: 'Ops' }, text: 'Disk full\non db1\nLeft: 2\nSecond alert' } },
    ),
    {
      ...arrival(
        'a call',
        {
          message: 'Ada Lovelace started a call',
          type: 'custom_calls',
          props: {
            attachments: [{ fallback: 'Ada Lovelace started a call', title: 'Ada Lovelace started a call' }],
            start_at: 1_767_225_600_000,
          },
        },
        { text: '', things: [{ kind: 'call', text: 'Ada Lovelace started a call' }] },
      ),
      source: CALLS,
    },
    arrival(
      'a voice message of a plugin',
      { message: '', type: 'custom_voice', file_ids: [file], metadata: { files: [{ id: file, name: 'v.mp3', mime_type: 'audio/mpeg' }] } },
      { attachments: [{ kind: 'audio', name: 'v.mp3', mime: 'audio/mpeg', source: { id: file } }] },
    ),
    arrival('a post of a type of a later version', { message: '', type: 'hologram' }, { things: [{ kind: 'unknown', text: 'hologram' }] }),
    arrival(
      'a file',
      { message: '', file_ids: [file], metadata: { files: [{ id: file, name: 'a.png', mime_type: 'image/png' }] } },
      { attachments: [{ kind: 'image', name: 'a.png', mime: 'image/png', source: { id: file } }] },
    ),
  ],
}
