/** The fake of the telephony providers on loopback, and what the suites of the whole product need to know about the channel. */
import type { ChannelTesting } from '@sluice/testkit/channel-testing'
import { createWebhook } from '../webhook.ts'
import { crashKind } from './crash-kind.ts'
import { OUR_NUMBER, startVoiceFake, TELNYX_TOKEN, type VoiceFake } from './fake.ts'
import { TELNYX_PUBLIC_KEY } from './keys.ts'
import { plivoScheme, telnyxScheme, twilioScheme } from './schemes.ts'
import { BASE_URL, sectionOf } from './section.ts'
import { bodies, voiceRequest, voiceVectors } from './vectors.ts'

export { ACCOUNT, AUTH_TOKEN, type CommandSent, OUR_NUMBER, startVoiceFake, TELNYX_TOKEN, type VoiceFake } from './fake.ts'
export { TELNYX_PUBLIC_KEY, telnyxHeaders } from './keys.ts'
export { BASE_URL, formSectionOf, sectionOf } from './section.ts'

export const testing: ChannelTesting<VoiceFake> = {
  async connect() {
    const fake = await startVoiceFake()
    return { fake, section: sectionOf(fake) }
  },
  crashKind,
  webhook: {
    bare: () =>
      createWebhook({ provider: 'telnyx', baseUrl: BASE_URL, authToken: TELNYX_TOKEN, publicKey: TELNYX_PUBLIC_KEY, from: OUR_NUMBER }),
    schemes: { 'voice-telnyx': telnyxScheme, 'voice-twilio': twilioScheme, 'voice-plivo': plivoScheme },
    vectors: voiceVectors,
    bodies,
    signedRequest: voiceRequest,
  },
}
