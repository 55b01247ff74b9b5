/** The fake of LINE on loopback, and what the suites of the whole product need to know about the channel. */
import { bodyHmac } from '@sluice/sdk'
import type { ChannelTesting } from '@sluice/testkit/channel-testing'
import { openWebhook } from '@sluice/testkit/webhook-fuzz/open-webhook'
import { type Signature, signatureScheme } from '@sluice/testkit/webhook-fuzz/signature-scheme'
import feature from '../index.ts'
import { createWebhook } from '../webhook.ts'
import { crashKind } from './crash-kind.ts'
import { LINE_TOKEN, type LineFake, startLineFake } from './fake.ts'
import { LINE_SECRET, sectionOf } from './section.ts'
import { bodies, lineRequest, lineVectors } from './vectors.ts'

export { LINE_BOT, LINE_GROUP, LINE_TOKEN, LINE_USER, type LineFake, type LineFakeOptions, type LineSent, startLineFake } from './fake.ts'
export { LINE_SECRET } from './section.ts'

const SIGNATURE: Signature = { scheme: bodyHmac('x-line-signature', { encoding: 'base64' }), secret: LINE_SECRET }
const open = () => openWebhook(feature, { channel_access_token: LINE_TOKEN, channel_secret: LINE_SECRET }).webhook

export const testing: ChannelTesting<LineFake> = {
  async connect(nowMs) {
    const fake = await startLineFake({ nowMs })
    return { fake, section: sectionOf(fake) }
  },
  crashKind,
  webhook: {
    bare: () => createWebhook({ secret: LINE_SECRET, groupPolicy: 'mention', groupSenders: undefined }),
    schemes: { line: (random) => signatureScheme(open(), SIGNATURE, random) },
    vectors: lineVectors,
    bodies,
    signedRequest: lineRequest,
  },
}
