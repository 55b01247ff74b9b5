/** What people can send on the platform, as events of Slack's Events API. */
import type { Members } from '@sluice/kit/foreign-json'
import type { ArrivalSubject, RecordedArrival } from '@sluice/testkit/channel'
import * as v from 'valibot'
import { slackSection } from '../config.ts'
import { parseCommand, parseMessage } from '../parse.ts'

const config = v.parse(slackSection.schema, { bot_token: 'xoxb-1-test', app_token: 'xapp-1-test' })
const EVENT = 'https://docs.slack.dev/reference/events/message'
const BLOCKS = 'https://docs.slack.dev/reference/block-kit/blocks/rich-text-block'
const FILES = 'https://docs.slack.dev/reference/events/message/file_share'

function arrival(what: string, source: string, event: object, expect: RecordedArrival['expect']): RecordedArrival {
  const payload = { type: 'message', channel: 'D1', channel_type: 'im', user: 'UADA', team: 'T1', ts: '1767225600.000100', ...event }
  return { what, source, payload, expect }
}
const shared = {
  ts: '1767225500.000100',
  channel_id: 'C9',
  is_msg_unfurl: true,
  is_share: true,
  author_name: 'Ben',
  author_id: 'UBEN',
  text: 'Invoice 4711 is overdue',
  fallback: 'Ben: Invoice 4711 is overdue',
  files: [{ id: 'F1', name: 'invoice.pdf', mimetype: 'application/pdf', url_private_download: 'https://files.slack.com/x' }],
}
const invoice = { kind: 'file', name: 'invoice.pdf', mime: 'application/pdf', source: { url: 'https://files.slack.com/x' } } as const
const forwarded = { from: { kind: 'person', name: 'Ben', id: 'UBEN' }, text: 'Invoice 4711 is overdue', attachments: [invoice] } as const
const rich = (elements: object[]) => ({ blocks: [{ type: 'rich_text', elements: [{ type: 'rich_text_section', elements }] }] })

const use = (channel_id: string) => ({ command: '/sluice', text: 'stop', user_id: 'UADA', channel_id, trigger_id: '1.1' })

export const slackArrivals: ArrivalSubject = {
  parse(payload) {
    const [members, bot] = [payload as Members, { account: 'A1', userId: 'UBOT', config }]
    return [parseCommand(members, bot) ?? parseMessage(members, bot) ?? []].flat()
  },
  menu: { direct: use('D1'), room: use('C1') },
  never: { quoted: 'Slack sends the first message of a thread only on request; see thread-roots.test.ts' },
  recorded: [
    arrival('a text', EVENT, { text: 'hi' }, { text: 'hi', addressed: 'direct' }),
    arrival('a mention', EVENT, { channel: 'C1', text: '<@UBOT> hi' }, { text: 'hi', addressed: 'mention' }),
    arrival(
      'a reply in a thread of the bot',
      EVENT,
      { channel: 'C1', text: 'why?', thread_ts: '1767225500.000100', parent_user_id: 'UBOT' },
      { addressed: 'reply' },
    ),
    arrival('a /me message', `${EVENT}/me_message`, { subtype: 'me_message', text: 'waves' }, { text: 'waves' }),
    arrival(
      'a forward with a comment',
      FILES,
      { text: 'please handle this', attachments: [shared] },
      { text: 'please handle this', forwarded },
    ),
    arrival('a forward without a comment', FILES, { text: '', attachments: [shared] }, { text: '', forwarded }),
    arrival(
      'words that are only in blocks',
      BLOCKS,
      {
        text: '',
        ...rich([
          { type: 'text', text: 'ask ' },
          { type: 'user', user_id: 'UBOB' },
          { type: 'link', url: 'https://x.test/' },
        ]),
      },
      { text: 'ask @UBOBhttps://x.test/' },
    ),
    arrival('a file', FILES, { subtype: 'file_share', text: '', files: shared.files }, { attachments: [invoice] }),
    arrival(
      'a preview of a page',
      'https://docs.slack.dev/messaging/unfurling-links-in-messages',
      { text: 'see', attachments: [{ title: 'Page', text: 'words of the page', title_link: 'https://x.test/' }] },
      { text: 'see', things: [{ kind: 'link', text: 'Page, words of the page, https://x.test/' }] },
    ),
    arrival(
      'the preview of an app, which has its words in blocks',
      'https://docs.slack.dev/messaging/unfurling-links-in-messages',
      {
        text: 'see',
        attachments: [
          {
            is_app_unfurl: true,
            from_url: 'https://x.test/7',
            fallback: '[no preview available]',
            blocks: [{ type: 'section', text: { type: 'mrkdwn', text: 'Ticket 4711 &amp; more' } }],
          },
        ],
      },
      { text: 'see', things: [{ kind: 'link', text: 'Ticket 4711 & more, https://x.test/7' }] },
    ),
    arrival(
      'a forward of the message of an app, which has its words in blocks and attachments',
      FILES,
      {
        text: '',
        attachments: [
          {
            ...shared,
            text: '',
            files: [],
            fallback: '[no preview available]',
            message_blocks: [
              {
                team: 'T1',
                channel: 'C9',
                ts: shared.ts,
                message: { blocks: [{ type: 'header', text: { type: 'plain_text', text: 'Alert' } }] },
              },
            ],
            attachments: [{ title: 'Disk full', text: 'on db1', fallback: 'Disk full on db1' }],
          },
        ],
      },
      { text: '', forwarded: { from: { kind: 'person', name: 'Ben', id: 'UBEN' }, text: 'Alert\nDisk full\non db1' } },
    ),
    arrival(
      'a table, a date and a group of people',
      'https://docs.slack.dev/reference/block-kit/blocks/table-block',
      {
        text: '',
        blocks: [
          {
            type: 'rich_text',
            elements: [
              {
                type: 'rich_text_section',
                elements: [
                  { type: 'usergroup', usergroup_id: 'S1' },
                  { type: 'text', text: ' until ' },
                  { type: 'date', timestamp: 1_767_225_600, format: '{date}', fallback: 'January 1' },
                ],
              },
            ],
          },
          {
            type: 'table',
            rows: [
              [
                { type: 'raw_text', text: 'Tea' },
                { type: 'raw_text', text: '5' },
              ],
            ],
          },
        ],
      },
      { text: '@subteam^S1 until January 1\nTea | 5' },
    ),
    arrival(
      'a block of a later version',
      BLOCKS,
      { text: '', blocks: [{ type: 'hologram' }] },
      { things: [{ kind: 'unknown', text: 'hologram' }] },
    ),
  ],
}
