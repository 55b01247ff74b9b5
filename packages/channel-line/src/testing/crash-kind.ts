/** Messages of line: each sender writes to the bot directly, and the first reply uses the token of the message. */
import { hmacSha256 } from '@sluice/sdk'
import type { CrashKind } from '@sluice/testkit/crash-kind'
import { LINE_BOT, startLineFake } from './fake.ts'
import { LINE_SECRET, sectionOf } from './section.ts'

const SENDERS = ['1', '2', '3', '4'].map((digit) => `U${digit.repeat(32)}`) as [string, ...string[]]

export async function crashKind(): Promise<CrashKind> {
  const fake = await startLineFake()
  return {
    fake,
    section: sectionOf(fake),
    senders: SENDERS,
    batchMax: 4,
    isPrivate: true,
    write: ({ mark }) => `message-${mark}`,
    request(messages) {
      const events = messages.map(({ id, mark, sender, text }) => ({
        type: 'message',
        mode: 'active',
        timestamp: Date.now(),
        webhookEventId: `event-${mark}`,
        deliveryContext: { isRedelivery: false },
        replyToken: fake.replyToken(mark, sender),
        source: { type: 'user', userId: sender },
        message: { id, type: 'text', quoteToken: `quote-${mark}`, text },
      }))
      const body = JSON.stringify({ destination: LINE_BOT, events })
      const signature = hmacSha256(LINE_SECRET, body).toString('base64')
      return { path: '/line', headers: { 'content-type': 'application/json; charset=utf-8', 'x-line-signature': signature }, body }
    },
    delivered: () => fake.sent.map(({ text }) => text),
  }
}
