/** The fake of Lark and Feishu on loopback, and what the suites of the whole product need to know about the channel. */
import type { ChannelTesting } from '@sluice/testkit/channel-testing'
import { createWebhook } from '../webhook.ts'
import { crashKind } from './crash-kind.ts'
import { startWorkchatFake, WORKCHAT_APP_ID, WORKCHAT_ENCRYPT_KEY, type WorkchatFake } from './fake.ts'
import { signatureScheme, tokenScheme } from './schemes.ts'
import { webhookSection } from './section.ts'
import { bodies, signedRequest, workchatVectors } from './vectors.ts'

export {
  buttonsOf,
  type Said,
  startWorkchatFake,
  textIn,
  WORKCHAT_APP_ID,
  WORKCHAT_APP_SECRET,
  WORKCHAT_BOT,
  WORKCHAT_ENCRYPT_KEY,
  WORKCHAT_VERIFICATION_TOKEN,
  type WorkchatFake,
  type WorkchatFakeOptions,
} from './fake.ts'
export type { WorkchatMessage } from './fake-chats.ts'
export { socketSection, webhookSection } from './section.ts'
export { workchatEncrypted, workchatSignature } from './signed.ts'

export const testing: ChannelTesting<WorkchatFake> = {
  async connect(nowMs) {
    const fake = await startWorkchatFake({ nowMs })
    return { fake, section: webhookSection(fake) }
  },
  crashKind,
  webhook: {
    bare: () => createWebhook({ path: '/workchat', appId: WORKCHAT_APP_ID, encryptKey: WORKCHAT_ENCRYPT_KEY }),
    schemes: { workchat: signatureScheme, 'workchat-token': tokenScheme },
    vectors: workchatVectors,
    bodies,
    signedRequest,
  },
}
