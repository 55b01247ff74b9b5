/** The fake of chatapp on loopback, and what the suites of the whole product need to know about the channel. */
import { bodyHmac } from '@sluice/sdk'
import type { ChannelTesting } from '@sluice/testkit/channel-testing'
import { openWebhook } from '@sluice/testkit/webhook-fuzz/open-webhook'
import { signatureScheme } from '@sluice/testkit/webhook-fuzz/signature-scheme'
import feature from '../index.ts'
import { createWebhook } from '../webhook.ts'
import { connect } from './connect.ts'
import { crashKind } from './crash-kind.ts'
import type { ChatappFake } from './fake.ts'
import { bodies, CHATAPP_SECRET, chatappRequest, chatappVectors } from './vectors.ts'

export { type ChatappFake, type ChatappFakeOptions, type ChatappMedia, type ChatappSent, startChatappFake } from './fake.ts'
export { CHATAPP_BODY, CHATAPP_SECRET, chatappRequest } from './vectors.ts'

const open = () =>
  openWebhook(feature, {
    access_token: 'access-token',
    phone_number_id: '200000000000002',
    verify_token: 'verify-token',
    app_secret: CHATAPP_SECRET,
  }).webhook

export const testing: ChannelTesting<ChatappFake> = {
  connect,
  crashKind,
  webhook: {
    bare: () => createWebhook({ secret: CHATAPP_SECRET, verifyToken: 'vt-01', account: '200000000000002' }),
    schemes: {
      chatapp: (random) =>
        signatureScheme(open(), { scheme: bodyHmac('x-hub-signature-256', { prefix: 'sha256=' }), secret: CHATAPP_SECRET }, random),
    },
    vectors: chatappVectors,
    bodies,
    signedRequest: chatappRequest,
  },
}
