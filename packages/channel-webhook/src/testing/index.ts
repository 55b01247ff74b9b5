/** The receiver on loopback, and what the suites of the whole product need to know about the channel. */
import { bodyHmac, SENDER_SCHEMES } from '@sluice/sdk'
import type { ChannelTesting } from '@sluice/testkit/channel-testing'
import { openWebhook } from '@sluice/testkit/webhook-fuzz/open-webhook'
import { type Signature, signatureScheme } from '@sluice/testkit/webhook-fuzz/signature-scheme'
import feature from '../index.ts'
import { createWebhook } from '../webhook.ts'
import { crashKind } from './crash-kind.ts'
import { WEBHOOK_PLAIN_SECRET, WEBHOOK_SECRET, type WebhookFake } from './fake.ts'
import { connect } from './section.ts'
import { bodies, signedRequest, vectors } from './vectors.ts'

export {
  startWebhookFake,
  WEBHOOK_AUTHORIZATION,
  WEBHOOK_PLAIN_SECRET,
  WEBHOOK_SECRET,
  type WebhookFake,
  type WebhookReply,
} from './fake.ts'
export { signed } from './signed.ts'

const STANDARD: Signature = { scheme: SENDER_SCHEMES['standard-webhooks'], secret: WEBHOOK_SECRET }
const PLAIN: Signature = { scheme: bodyHmac('x-webhook-signature'), optionalPrefix: 'sha256=', secret: WEBHOOK_PLAIN_SECRET }
const open = ({ secret }: Signature) => openWebhook(feature, { send_url: 'http://127.0.0.1:9/replies', secret }).webhook

export const testing: ChannelTesting<WebhookFake> = {
  connect,
  crashKind,
  webhook: {
    bare: () => createWebhook({ secret: WEBHOOK_SECRET }),
    schemes: {
      webhook: (random) => signatureScheme(open(STANDARD), STANDARD, random),
      'webhook-plain': (random) => signatureScheme(open(PLAIN), PLAIN, random),
    },
    vectors,
    bodies,
    signedRequest,
  },
}
