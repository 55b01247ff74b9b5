/** The fake of bizchat on loopback, and what the suites of the whole product need to know about the channel. */
import type { ChannelTesting } from '@sluice/testkit/channel-testing'
import { openWebhook } from '@sluice/testkit/webhook-fuzz/open-webhook'
import { bearerScheme, tokenScheme } from '@sluice/testkit/webhook-fuzz/shared-secret-scheme'
import feature from '../index.ts'
import { createWebhook } from '../webhook.ts'
import { crashKind } from './crash-kind.ts'
import { type BizchatFake, startBizchatFake } from './fake.ts'
import { BIZCHAT_SECRET, sectionOf } from './section.ts'
import { bizchatVectors } from './vectors.ts'

export { BIZCHAT_TOKEN, type BizchatFake, type BizchatFakeOptions, type BizchatSent, startBizchatFake } from './fake.ts'
export { bizchatRequest } from './vectors.ts'

const open = () => openWebhook(feature, { api_token: 'api-token', api_url: 'https://host.example', webhook_secret: BIZCHAT_SECRET }).webhook

export const testing: ChannelTesting<BizchatFake> = {
  async connect() {
    const fake = await startBizchatFake()
    return { fake, section: sectionOf(fake) }
  },
  crashKind,
  webhook: {
    bare: () => createWebhook({ secret: BIZCHAT_SECRET, account: 'default' }),
    schemes: {
      'bizchat-token': (random) => tokenScheme(open(), BIZCHAT_SECRET, random),
      'bizchat-bearer': (random) => bearerScheme(open(), BIZCHAT_SECRET, random),
    },
    vectors: bizchatVectors,
  },
}
