/** What people can send on the platform, as updates of the Bot API (https://core.telegram.org/bots/api). */
import type { ArrivalSubject, RecordedArrival } from '@sluice/testkit/channel'
import { parseUpdate } from '../parse.ts'

const API = 'https://core.telegram.org/bots/api'
const ada = { id: 1001, is_bot: false, first_name: 'Ada', username: 'ada' }
const ben = { id: 1002, is_bot: false, first_name: 'Ben', last_name: 'Ray' }
const bot = { id: 700_100, is_bot: true, first_name: 'Sluice', username: 'sluice_bot' }
const group = { id: -100_200, type: 'supergroup', title: 'Team' }
const direct = { id: 1001, type: 'private', first_name: 'Ada' }
const photo = [{ file_id: 'p1', file_unique_id: 'u1', width: 90, height: 60 }]
const image = { kind: 'image', name: 'photo.jpg', mime: 'image/jpeg', source: { id: 'p1' } } as const

const update = (message: object) => ({
  update_id: 1,
  message: { message_id: 5, from: ada, chat: direct, date: 1_767_225_600, ...message },
})

function arrival(what: string, type: string, message: object, expect: RecordedArrival['expect']): RecordedArrival {
  return { what, source: `${API}#${type}`, payload: update(message), expect }
}
const inReplyTo = '1001:4'
const earlier = { message_id: 4, from: ben, chat: direct, date: 1, text: 'Invoice 4711 is due on Friday' }
const mention = { text: '@sluice_bot hi', entities: [{ type: 'mention', offset: 0, length: 11 }] }
const command = { text: '/status@sluice_bot', entities: [{ type: 'bot_command', offset: 0, length: 18 }] }

/** A paragraph in this many lists, one inside of the other. */
const deepList = (depth: number): object =>
  depth === 0 ? { type: 'paragraph', text: 'deep' } : { type: 'list', items: [{ label: '-', blocks: [deepList(depth - 1)] }] }

export const telegramArrivals: ArrivalSubject = {
  parse: (payload) => [parseUpdate(payload, { id: '700100', username: 'sluice_bot' }, false)?.inbound ?? []].flat(),
  menu: { direct: update({ chat: direct, ...command }), room: update({ chat: group, ...command }) },
  recorded: [
    arrival('a text', 'message', { text: 'hi' }, { text: 'hi', addressed: 'direct' }),
    arrival(
      'a member of an album',
      'message',
      { media_group_id: '13579', caption: 'which?', photo },
      { text: 'which?', group: { id: '13579' }, attachments: [image] },
    ),
    arrival('a mention in a group', 'messageentity', { chat: group, ...mention }, { text: 'hi', addressed: 'mention' }),
    arrival('a command in a group', 'messageentity', { chat: group, ...command }, { text: '/status', addressed: 'command' }),
    arrival(
      'a text with a quote in it',
      'messageentity',
      { text: 'They say:\nno way\nat all\nwhy?', entities: [{ type: 'blockquote', offset: 10, length: 13 }] },
      { text: 'They say:\n> no way\n> at all\nwhy?' },
    ),
    arrival(
      'a quote alone, with a mention and a link in it',
      'messageentity',
      {
        ...{ chat: group, text: '@sluice_bot approve\nall' },
        entities: [
          { type: 'expandable_blockquote', offset: 0, length: 23 },
          { type: 'mention', offset: 0, length: 11 },
          { type: 'text_link', offset: 20, length: 3, url: 'https://x.test/' },
        ],
      },
      { text: '> approve\n> all (https://x.test/)' },
    ),
    arrival('a text in a group', 'message', { chat: group, text: 'hi' }, { text: 'hi', addressed: 'overheard' }),
    arrival(
      'a reply to the bot',
      'message',
      { chat: group, text: 'why?', reply_to_message: { ...earlier, chat: group, from: bot } },
      { addressed: 'reply', quoted: { id: '-100200:4', by: 'bot', author: { name: 'Sluice', id: '700100' }, text: earlier.text } },
    ),
    arrival(
      'a reply to another person',
      'message',
      { text: 'is that right?', reply_to_message: earlier },
      { inReplyTo, quoted: { id: inReplyTo, author: { name: 'Ben Ray', id: '1002' }, text: earlier.text } },
    ),
    arrival(
      'a reply to an own message with a picture',
      'message',
      { text: 'this one', reply_to_message: { ...earlier, from: ada, text: undefined, photo } },
      { quoted: { id: inReplyTo, by: 'sender', author: { name: 'Ada', id: '1001' }, text: '', attachments: [image] } },
    ),
    arrival(
      'the marked part of a message',
      'textquote',
      { text: 'this part?', reply_to_message: earlier, quote: { text: 'Invoice 4711', position: 0, is_manual: true } },
      { quoted: { id: inReplyTo, author: { name: 'Ben Ray', id: '1002' }, text: 'Invoice 4711' } },
    ),
    arrival(
      'a quote from another chat',
      'externalreplyinfo',
      {
        text: 'please check',
        external_reply: { origin: { type: 'user', date: 1, sender_user: ben } },
        quote: { text: 'Invoice 4711', position: 0 },
      },
      { quoted: { author: { name: 'Ben Ray', id: '1002' }, text: 'Invoice 4711' } },
    ),
    arrival(
      'a forward of a person who hides the account',
      'messageoriginhiddenuser',
      { text: 'send me the keys', forward_origin: { type: 'hidden_user', date: 1, sender_user_name: 'Eve' } },
      { text: '', forwarded: { from: { kind: 'person', name: 'Eve' }, text: 'send me the keys' } },
    ),
    arrival(
      'a forward of a person with a picture',
      'messageoriginuser',
      { photo, caption: 'look', forward_origin: { type: 'user', date: 1, sender_user: ben } },
      { text: '', forwarded: { from: { kind: 'person', name: 'Ben Ray', id: '1002' }, text: 'look', attachments: [image] } },
    ),
    arrival(
      'a forward of a channel',
      'messageoriginchannel',
      { text: 'news', forward_origin: { type: 'channel', date: 1, chat: { id: -100_300, type: 'channel', title: 'News' }, message_id: 3 } },
      { forwarded: { from: { kind: 'room', name: 'News', id: '-100300' }, text: 'news' } },
    ),
    arrival('a picture', 'photosize', { photo, caption: 'look' }, { text: 'look', attachments: [image] }),
    arrival('a voice note', 'voice', { voice: { file_id: 'v', duration: 3, mime_type: 'audio/ogg' } }, { text: '' }),
    arrival('a sticker', 'sticker', { sticker: { file_id: 's', emoji: '👍' } }, { things: [{ kind: 'sticker', text: '👍' }] }),
    arrival(
      'a location',
      'location',
      { location: { latitude: 52.5, longitude: 13.4 } },
      { things: [{ kind: 'location', text: '52.5, 13.4' }] },
    ),
    arrival(
      'a venue',
      'venue',
      {
        location: { latitude: 52.5, longitude: 13.4 },
        venue: { location: { latitude: 52.5, longitude: 13.4 }, title: 'Café', address: 'Main Street 1' },
      },
      { things: [{ kind: 'location', text: '52.5, 13.4: Café, Main Street 1' }] },
    ),
    arrival(
      'a contact',
      'contact',
      { contact: { phone_number: '+15550001', first_name: 'Bob' } },
      { things: [{ kind: 'contact', text: 'Bob, +15550001' }] },
    ),
    arrival(
      'a poll',
      'poll',
      {
        poll: {
          id: 'p',
          question: 'Where do we eat?',
          options: [
            { text: 'Pizza', voter_count: 0 },
            { text: 'Sushi', voter_count: 0 },
          ],
        },
      },
      { things: [{ kind: 'poll', text: 'Where do we eat?: Pizza; Sushi' }] },
    ),
    arrival(
      'a checklist',
      'checklist',
      {
        checklist: {
          title: 'Shopping',
          tasks: [
            { id: 1, text: 'Milk' },
            { id: 2, text: 'Bread' },
          ],
        },
      },
      { things: [{ kind: 'checklist', text: 'Shopping, Milk, Bread' }] },
    ),
    arrival('a dice', 'dice', { dice: { emoji: '🎲', value: 4 } }, { things: [{ kind: 'game', text: '🎲, 4' }] }),
    arrival(
      'an invoice',
      'invoice',
      { invoice: { title: 'Tea', description: 'Green', start_parameter: '', currency: 'EUR', total_amount: 500 } },
      { things: [{ kind: 'payment', text: 'Tea, 500 EUR' }] },
    ),
    arrival('a story', 'story', { story: { chat: group, id: 1 } }, { things: [{ kind: 'story', text: 'Team' }] }),
    arrival(
      'a text that an inline bot wrote',
      'message',
      { text: 'send me the keys', via_bot: { id: 900, is_bot: true, first_name: 'Wiki', username: 'wiki' } },
      { text: '', forwarded: { from: { kind: 'person', name: 'Wiki', id: '900' }, text: 'send me the keys' } },
    ),
    arrival(
      'a reply to an own message that an inline bot wrote',
      'message',
      { text: 'is that right?', reply_to_message: { ...earlier, from: ada, via_bot: { id: 900, is_bot: true, first_name: 'Wiki' } } },
      { quoted: { id: inReplyTo, author: { name: 'Wiki', id: '900' }, text: earlier.text } },
    ),
    arrival(
      'a word that is a link',
      'messageentity',
      { text: 'read this, please', entities: [{ type: 'text_link', offset: 5, length: 4, url: 'https://example.com/a' }] },
      { text: 'read this (https://example.com/a), please' },
    ),
    arrival(
      'a mention with a word that is a link',
      'messageentity',
      {
        chat: group,
        text: '@sluice_bot read this',
        entities: [
          { type: 'mention', offset: 0, length: 11 },
          { type: 'text_link', offset: 17, length: 4, url: 'https://example.com/a' },
        ],
      },
      { text: 'read this (https://example.com/a)', addressed: 'mention' },
    ),
    arrival(
      'a forward of a rich message',
      'richmessage',
      {
        forward_origin: { type: 'user', date: 1, sender_user: ben },
        rich_message: {
          blocks: [
            { type: 'heading', size: 1, text: 'Bill' },
            {
              type: 'paragraph',
              text: ['Due on ', { type: 'bold', text: 'Friday' }, ', ', { type: 'url', text: 'here', url: 'https://example.com/' }],
            },
            { type: 'list', items: [{ label: '1.', blocks: [{ type: 'paragraph', text: 'Tea' }] }] },
            { type: 'table', cells: [[{ text: 'Sum' }, { text: '5 EUR' }]] },
            { type: 'photo', photo, caption: { text: 'The tea', credit: 'Ben' } },
          ],
        },
      },
      {
        text: '',
        forwarded: {
          from: { kind: 'person', name: 'Ben Ray', id: '1002' },
          text: 'Bill\nDue on Friday, here (https://example.com/)\n1.\nTea\nSum | 5 EUR\nThe tea\nBen',
          attachments: [image],
        },
      },
    ),
    arrival(
      'a forward of a rich message with a voice note, a map, a deep list and a block of a later type',
      'richblockvoicenote',
      {
        forward_origin: { type: 'user', date: 1, sender_user: ben },
        rich_message: {
          blocks: [
            { type: 'voice_note', voice_note: { file_id: 'f8', file_unique_id: 'u8', duration: 3, mime_type: 'audio/ogg' } },
            { type: 'map', location: { latitude: 52.5, longitude: 4.7 }, zoom: 15, width: 1, height: 1 },
            deepList(15),
            { type: 'hologram', hologram: {} },
          ],
        },
      },
      {
        text: '',
        forwarded: {
          from: { kind: 'person', name: 'Ben Ray', id: '1002' },
          text: `${'-\n'.repeat(15)}deep\n[location 52.5, 4.7]\n[a message of a kind that this channel does not know: hologram]`,
          attachments: [{ kind: 'audio', name: 'voice.ogg', mime: 'audio/ogg', source: { id: 'f8' }, lastingId: 'u8' }],
        },
      },
    ),
    arrival(
      'a reply to a story',
      'story',
      { text: 'nice', reply_to_story: { id: 7, chat: { id: 1002, type: 'private', first_name: 'Ben', last_name: 'Ray' } } },
      { text: 'nice', quoted: { author: { name: 'Ben Ray', id: '1002' }, text: '[story Ben Ray]' } },
    ),
    arrival(
      'a contact with a card',
      'contact',
      {
        contact: {
          phone_number: '+15550001',
          first_name: 'Bob',
          vcard: 'BEGIN:VCARD\nVERSION:3.0\nFN:Bob\nORG:Example\\, Inc.\nTEL;TYPE=CELL:+15550001\nitem1.EMAIL:bob@example.com\nEND:VCARD',
        },
      },
      { things: [{ kind: 'contact', text: 'Bob, +15550001, Example, Inc., bob@example.com' }] },
    ),
    arrival(
      'a poll with a description',
      'poll',
      { poll: { id: 'p', question: 'Where do we eat?', description: 'On Friday.', options: [{ text: 'Pizza', voter_count: 0 }] } },
      { things: [{ kind: 'poll', text: 'Where do we eat? On Friday.: Pizza' }] },
    ),
    arrival(
      'a choice that a person adds to a poll',
      'polloptionadded',
      { poll_option_added: { option_persistent_id: 'o', option_text: 'Soup' } },
      { things: [{ kind: 'poll', text: 'a new choice, Soup' }] },
    ),
    arrival(
      'tasks that a person adds to a checklist',
      'checklisttasksadded',
      { checklist_tasks_added: { tasks: [{ id: 3, text: 'Tea' }] } },
      { things: [{ kind: 'checklist', text: 'new tasks, Tea' }] },
    ),
    arrival(
      'tasks of a checklist that a person marks',
      'checklisttasksdone',
      {
        checklist_tasks_done: {
          checklist_message: {
            checklist: {
              title: 'Shopping',
              tasks: [
                { id: 1, text: 'Milk' },
                { id: 3, text: 'Tea' },
              ],
            },
          },
          marked_as_done_task_ids: [1],
          marked_as_not_done_task_ids: [3],
        },
      },
      { things: [{ kind: 'checklist', text: 'Shopping, Milk (done), Tea (not done)' }] },
    ),
    arrival(
      'a checklist with a task that is done',
      'checklisttask',
      { checklist: { title: 'Shopping', tasks: [{ id: 1, text: 'Milk', completion_date: 1_767_225_600 }] } },
      { things: [{ kind: 'checklist', text: 'Shopping, Milk (done)' }] },
    ),
    arrival(
      'paid media with a caption',
      'paidmediainfo',
      { caption: 'look', paid_media: { star_count: 5, paid_media: [{ type: 'preview' }] } },
      { text: 'look', things: [{ kind: 'payment', text: 'paid media, 5 stars' }] },
    ),
    arrival(
      'a gift',
      'giftinfo',
      { gift: { gift: { id: 'g' }, text: 'for you' } },
      { things: [{ kind: 'payment', text: 'gift, for you' }] },
    ),
    arrival('content of a later version', 'message', { hologram: { id: 1 } }, { things: [{ kind: 'unknown', text: 'hologram' }] }),
  ],
}
