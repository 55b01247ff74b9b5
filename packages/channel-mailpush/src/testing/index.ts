/** The fake of mailpush on loopback, and what the suites of the whole product need to know about the channel. */
import type { ChannelTesting } from '@sluice/testkit/channel-testing'
import { openWebhook } from '@sluice/testkit/webhook-fuzz/open-webhook'
import { bearerScheme, tokenScheme } from '@sluice/testkit/webhook-fuzz/shared-secret-scheme'
import feature from '../index.ts'
import { crashKind } from './crash-kind.ts'
import { type MailpushFake, startMailpushFake } from './fake.ts'
import { pushTokenScheme } from './scheme-push-token.ts'
import { MAILPUSH_SECRET, sectionOf } from './section.ts'
import { bodies, mailpushVectors } from './vectors.ts'

export { type MailpushFake, type MailpushFakeOptions, startMailpushFake } from './fake.ts'
export { createPushKeys, encodeJson, type PushClaims } from './fake-push.ts'
export { readSentMail } from './fake-sent.ts'

const open = () =>
  openWebhook(feature, { enabled: true, topic: 'projects/p/topics/t', oauth_token: 'oauth-token', webhook_secret: MAILPUSH_SECRET }).webhook

export const testing: ChannelTesting<MailpushFake> = {
  async connect(nowMs) {
    const fake = await startMailpushFake({ nowMs })
    return { fake, section: sectionOf(fake) }
  },
  crashKind,
  webhook: {
    schemes: {
      'mailpush-bearer': (random) => bearerScheme(open(), MAILPUSH_SECRET, random),
      'mailpush-token': (random) => tokenScheme(open(), MAILPUSH_SECRET, random),
      'mailpush-jwt': pushTokenScheme,
    },
    vectors: mailpushVectors,
    bodies,
  },
}
