/** The fake of textrelay on loopback, and what the suites of the whole product need to know about the channel. */
import type { ChannelTesting } from '@sluice/testkit/channel-testing'
import { createWebhook } from '../webhook.ts'
import { crashKind } from './crash-kind.ts'
import { startTextrelayFake, type TextrelayFake } from './fake.ts'
import { legacyScheme, standardScheme } from './schemes.ts'
import { sectionOf } from './section.ts'
import { bodies, TEXTRELAY_SECRET, textrelayRequest, textrelayVectors } from './vectors.ts'

export {
  startTextrelayFake,
  TEXTRELAY_PHONE,
  TEXTRELAY_TOKEN,
  type TextrelayFake,
  type TextrelayFakeOptions,
  type TextrelaySent,
  textrelaySignatures,
} from './fake.ts'
export { TEXTRELAY_BODY, TEXTRELAY_SECRET, textrelayRequest } from './vectors.ts'

export const testing: ChannelTesting<TextrelayFake> = {
  async connect() {
    const fake = await startTextrelayFake()
    return { fake, section: sectionOf(fake) }
  },
  crashKind,
  webhook: {
    bare: () => createWebhook({ secret: TEXTRELAY_SECRET, fromPhone: '+15550001111' }),
    schemes: { 'textrelay-legacy': legacyScheme, 'textrelay-standard': standardScheme },
    vectors: textrelayVectors,
    bodies,
    signedRequest: textrelayRequest,
  },
}
