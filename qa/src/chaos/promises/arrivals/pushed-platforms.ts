/** Platforms that post each message to the daemon. */
import { CHATAPP_SECRET, startChatappFake } from '@sluice/channel-chatapp/testing'
import { LINE_BOT, LINE_SECRET, LINE_TOKEN, startLineFake } from '@sluice/channel-line/testing'
import { hmacSha256 } from '@sluice/sdk'
import type { Delivered, Platform } from './platform.ts'

export async function chatapp(): Promise<Platform> {
  const fake = await startChatappFake()
  let count = 0
  const delivered = (from: string, message: object): Delivered => {
    const id = `wamid.arrival${++count}`
    const messages = [{ from, id, timestamp: String(Math.floor(Date.now() / 1000)), ...message }]
    const value = {
      messaging_product: 'whatsapp',
      metadata: { display_phone_number: '15550001111', phone_number_id: fake.phoneNumberId },
      contacts: [{ profile: { name: 'Ada' }, wa_id: from }],
      messages,
    }
    const body = JSON.stringify({ object: 'whatsapp_business_account', entry: [{ id: '1', changes: [{ field: 'messages', value }] }] })
    const signature = `sha256=${hmacSha256(CHATAPP_SECRET, body).toString('hex')}`
    return { id, request: { path: '/chatapp', headers: { 'content-type': 'application/json', 'x-hub-signature-256': signature }, body } }
  }
  const text = (body: string): object => ({ type: 'text', text: { body } })
  return {
    name: 'chatapp',
    fake,
    section: {
      access_token: fake.accessToken,
      phone_number_id: fake.phoneNumberId,
      verify_token: 'vt-01',
      app_secret: CHATAPP_SECRET,
      allowed_numbers: ['*'],
      api_url: fake.url,
    },
    people: ['15550100001', '15550100002', '15550100003'],
    isReady: () => true,
    text: (from, words) => delivered(from, text(words)),
    // WhatsApp reports no albums: each picture is a message of its own.
    album: (from, caption, pictures) =>
      pictures.map((bytes) =>
        delivered(from, { type: 'image', image: { id: fake.addMedia({ bytes, mime: 'image/png' }), mime_type: 'image/png', caption } }),
      ),
    quote: (from, words, { id }) => delivered(from, { ...text(words), context: { from, id } }),
    forward: (from, words) => delivered(from, { ...text(words), context: { forwarded: true } }),
    edit: (from, words, { id }) => delivered(from, { type: 'edit', edit: { original_message_id: id, message: text(words) } }),
  }
}

export async function line(): Promise<Platform> {
  const fake = await startLineFake()
  let count = 0
  const delivered = (userId: string, message: object): Delivered => {
    const id = String(50_000 + ++count)
    const event = {
      type: 'message',
      mode: 'active',
      timestamp: Date.now(),
      webhookEventId: `event-${id}`,
      deliveryContext: { isRedelivery: false },
      replyToken: fake.replyToken(id, userId),
      source: { type: 'user', userId },
      message: { id, quoteToken: `quote-${id}`, ...message },
    }
    const body = JSON.stringify({ destination: LINE_BOT, events: [event] })
    const headers = {
      'content-type': 'application/json; charset=utf-8',
      'x-line-signature': hmacSha256(LINE_SECRET, body).toString('base64'),
    }
    return { id, request: { path: '/line', headers, body } }
  }
  let sets = 0
  return {
    name: 'line',
    fake,
    section: { channel_access_token: LINE_TOKEN, channel_secret: LINE_SECRET, allowed_users: ['*'], api_url: fake.url },
    people: ['1', '2', '3'].map((digit) => `U${digit.repeat(32)}`) as [string, ...string[]],
    isReady: () => true,
    text: (user, text) => delivered(user, { type: 'text', text }),
    // A set of pictures has no caption; the text that follows joins its turn.
    album(user, caption, pictures) {
      const id = `set-${++sets}`
      const images = pictures.map((bytes, at) => {
        const image = delivered(user, {
          type: 'image',
          contentProvider: { type: 'line' },
          imageSet: { id, index: at + 1, total: pictures.length },
        })
        fake.addFile(image.id, { bytes, mime: 'image/png' })
        return image
      })
      return [...images, delivered(user, { type: 'text', text: caption })]
    },
    quote: (user, text, { id }) => delivered(user, { type: 'text', text, quotedMessageId: id }),
  }
}
