/** A microphone for tests, and what the suites of the whole product need to know about the channel. */
import type { ChannelTesting } from '@sluice/testkit/channel-testing'
import { type MicrophoneFake, startMicrophoneFake } from './fake.ts'

export { type MicrophoneFake, silence, startMicrophoneFake, tone } from './fake.ts'

export const testing: ChannelTesting<MicrophoneFake> = {
  connect: async () => ({ fake: startMicrophoneFake(), section: { wake_word: 'hey sluice' } }),
  noPlatform: 'a microphone of this machine keeps nothing that was said while no recorder ran',
}
