import type { Inbound } from '@sluice/sdk'
import { describe, expect, test } from 'vitest'
import { parse as parseRaw, reportsIn } from './parse.ts'
import { ACCOUNT, errorOf } from './testing/build-channel.ts'

const parseBytes = (body: Uint8Array) => parseRaw({ body }, { account: ACCOUNT })
const parse = (value: unknown, field: unknown = 'messages'): readonly Inbound[] =>
  parseBytes(new TextEncoder().encode(JSON.stringify({ entry: [{ changes: [{ field, value }] }] })))
const parseOne = (message: object) =>
  parse({ messages: [{ from: '15550002222', id: 'wamid.1', type: 'text', text: { body: 'hi' }, ...message }] })

test('reports the failed messages of our number, with code and words, and no others', () => {
  // https://developers.facebook.com/documentation/business-messaging/whatsapp/webhooks/reference/messages/status
  const statuses = [
    { id: 'wamid.1', status: 'delivered' },
    {
      id: 'wamid.2',
      status: 'failed',
      errors: [{ code: 131026, title: 'Message undeliverable', message: 'Message undeliverable', error_data: { details: 'No account' } }],
    },
    { id: 'wamid.3', status: 'failed' },
    { status: 'failed' },
  ]
  const reports = (value: object) => {
    const body = new TextEncoder().encode(JSON.stringify({ entry: [{ changes: [{ field: 'messages', value }] }] }))
    return reportsIn({ body }, { account: ACCOUNT })
  }
  expect(reports({ statuses })).toEqual([
    { message: 'wamid.2', error: 'Message undeliverable: No account (code 131026)' },
    { message: 'wamid.3', error: 'no reason given' },
  ])
  expect(reports({ metadata: { phone_number_id: 'another' }, statuses })).toEqual([])
})

describe('messages', () => {
  test.each([
    ['no id', { id: undefined }],
    ['an empty id', { id: '' }],
    ['no sender', { from: undefined }],
    ['a sender that is not a number', { from: 'Ada' }],
    ['an empty text', { text: { body: ' \n' } }],
    ['a text that is not a string', { text: { body: 7 } }],
    ['no text', { text: undefined }],
    ['a reaction', { type: 'reaction', reaction: { message_id: 'w', emoji: '👍' } }],
  ])('ignores a message with %s', (_what, message) => expect(parseOne(message)).toEqual([]))

  // The tap without its content, with an error beside it, is in https://github.com/david-lev/pywa/blob/master/tests/data/updates/message.json.
  test.each([
    ['a tap', { type: 'interactive' }],
    ['an empty form', { type: 'interactive', interactive: { type: 'nfm_reply', nfm_reply: {} } }],
    ['media without an id', { type: 'image', image: { mime_type: 'image/png' } }],
    ['an empty location', { type: 'location', location: {} }],
    ['an empty order', { type: 'order', order: { product_items: [] } }],
    ['an empty list of contacts', { type: 'contacts', contacts: [] }],
  ])('brings %s without content as a line', (_what, message) =>
    expect(parseOne(message)).toMatchObject([{ text: '', things: [{ kind: 'unknown', text: message.type }] }]),
  )

  test('keeps the other messages of a batch', () => {
    const messages = [{ type: 'text' }, null, 'x', { from: '15550002222', id: 'wamid.2', type: 'text', text: { body: 'hi' } }]
    expect(parse({ messages })).toMatchObject([{ id: 'wamid.2' }])
  })

  test.each(['soon', '', '-5', '1e300', '8640000000001', 1767225600, { toString: 1 }])('omits the time %j', (timestamp) => {
    expect(parseOne({ timestamp })).toEqual([
      {
        id: 'wamid.1',
        account: ACCOUNT,
        sender: '+15550002222',
        to: { to: '+15550002222', replyTo: 'wamid.1' },
        addressed: 'direct',
        text: 'hi',
      },
    ])
  })

  test('describes forms and unknown types, and keeps forwarded words apart', () => {
    expect(parseOne({ type: 'hologram', hologram: { id: '1' } })).toMatchObject([
      { text: '', things: [{ kind: 'unknown', text: 'hologram' }] },
    ])
    const form = { type: 'nfm_reply', nfm_reply: { name: 'flow', body: 'Sent', response_json: '{"day":"Monday"}' } }
    expect(parseOne({ type: 'interactive', interactive: form })).toMatchObject([
      { things: [{ kind: 'form', text: 'Sent, {"day":"Monday"}' }] },
    ])
    expect(parseOne({ context: { forwarded: true } })).toMatchObject([{ text: '', forwarded: { text: 'hi' } }])
    expect(parseOne({ context: { id: 'wamid.0' } })).toMatchObject([{ text: 'hi', inReplyTo: 'wamid.0' }])
  })

  // https://developers.facebook.com/documentation/business-messaging/whatsapp/webhooks/reference/messages/contacts and .../interactive
  test('describes contacts with all their words, other answers as they are, and the note of an order', () => {
    const contact = {
      name: { formatted_name: 'Bob Ray' },
      org: { company: 'Example', title: 'Buyer' },
      phones: [{ phone: '+1 555 0001', wa_id: '15550001' }],
      addresses: [{ street: 'Main Street 1', city: 'Berlin', zip: '10115', country: 'Germany' }],
      urls: [{ url: 'https://example.com' }],
      birthday: '1990-01-01',
    }
    expect(parseOne({ type: 'contacts', contacts: [contact] })).toMatchObject([
      {
        things: [
          {
            kind: 'contact',
            text: 'Bob Ray, Example, Buyer, +1 555 0001, Main Street 1 10115 Berlin Germany, https://example.com, 1990-01-01',
          },
        ],
      },
    ])
    const permission = { type: 'call_permission_reply', call_permission_reply: { response: 'accept' } }
    expect(parseOne({ type: 'interactive', interactive: permission })).toMatchObject([
      { things: [{ kind: 'form', text: 'call_permission_reply, {"response":"accept"}' }] },
    ])
    expect(parseOne({ type: 'order', order: { product_items: [], text: 'as always' } })).toMatchObject([{ text: 'as always' }])
  })

  test('a reply to our own message in a group is to the bot', () => {
    const reply = { group_id: 'G1', context: { from: '15550001111', id: 'wamid.0' } }
    const read = (display_phone_number: string) =>
      parse({
        metadata: { display_phone_number },
        messages: [{ from: '15550002222', id: 'wamid.1', type: 'text', text: { body: 'hi' }, ...reply }],
      })
    expect(read('+1 555-000-1111')).toMatchObject([{ addressed: 'reply' }])
    expect(read('+1 555-000-3333')).toMatchObject([{ addressed: 'overheard' }])
  })

  test('prefers the number of a sender to the id', () => {
    expect(parseOne({ from_user_id: 'US.1' })).toMatchObject([{ sender: '+15550002222' }])
    expect(parseOne({ from: undefined, from_user_id: 'US.1' })).toMatchObject([{ sender: 'US.1', to: { to: 'US.1' } }])
  })

  test('ignores messages of our own number in any spelling', () => {
    expect(
      parse({
        metadata: { display_phone_number: '+1 555-000-2222' },
        messages: [{ from: '15550002222', id: 'w', type: 'button', button: { text: 'x' } }],
      }),
    ).toEqual([])
  })
})

describe('context lines', () => {
  const textOf = (message: object) => parseOne(message)[0]?.text

  test('show the value of a button unless it repeats the text', () => {
    expect(textOf({ type: 'button', button: { text: 'Yes', payload: 'confirm 1' } })).toBe('Yes\nButton: confirm 1')
    expect(textOf({ type: 'button', button: { text: 'Yes', payload: 'Yes' } })).toBe('Yes')
    const row = { id: 'r1', title: 'Monday', description: '9 to 5' }
    expect(textOf({ type: 'interactive', interactive: { type: 'list_reply', list_reply: row } })).toBe('Monday\nList row: r1, 9 to 5')
  })

  test('show the product that the message refers to', () => {
    const context = { from: '15550001111', id: 'wamid.0', referred_product: { catalog_id: '7001', product_retailer_id: 'sku-1' } }
    expect(textOf({ context })).toBe('hi\nProduct: sku-1, catalogue 7001')
    expect(textOf({ context: { referred_product: {} } })).toBe('hi')
  })

  test('leave out the words of the advertisement or post that the sender came from, which are words of others', () => {
    const referral = { source_type: 'ad', source_url: 'https://fb.me/1', headline: 'Chat with us', body: 'Summer\n sale', ctwa_clid: 'x' }
    const ad = { kind: 'link', text: 'from an advertisement, Chat with us, Summer sale, https://fb.me/1' }
    expect(parseOne({ referral })).toMatchObject([{ text: 'hi', things: [ad] }])
    expect(parseOne({ referral: { ...referral, source_type: 'post' } })[0]?.things?.[0]?.text).toMatch(/^from a post, Chat/)
    expect(parseOne({ referral: { ...referral, body: 'x'.repeat(9999) } })[0]?.things?.[0]?.text.length).toBeLessThan(600)
    const picture = { type: 'image', text: undefined, image: { id: '1' }, referral: { headline: 'Sale' } }
    expect(parseOne(picture)).toMatchObject([{ text: '', things: [{ kind: 'link' }], attachments: [{ source: { id: '1' } }] }])
    expect(parseOne({ referral: {} })[0]).not.toHaveProperty('things')
  })

  test('do not turn an empty message into one with text', () => {
    expect(parseOne({ text: { body: '' }, referral: { headline: 'Sale' } })).toEqual([])
  })
})

describe('the body', () => {
  test.each(['', '{', 'x', '{"entry":[}'])('rejects %j, which is not JSON', (text) => {
    expect(errorOf(() => parseBytes(Buffer.from(text)))).toMatchObject({
      code: 'invalid_request',
      message: 'Invalid JSON payload',
    })
  })

  test('rejects bytes that are not UTF-8', () => {
    expect(errorOf(() => parseBytes(Uint8Array.of(0x22, 0xff, 0x22)))).toMatchObject({ code: 'invalid_request' })
  })

  test.each(['null', '[]', '7', '"x"', '{}', '{"entry":{}}', '{"entry":[{"changes":[null,{"field":"messages"}]}]}'])(
    'finds no message in %s',
    (text) => expect(parseBytes(Buffer.from(text))).toEqual([]),
  )
})
