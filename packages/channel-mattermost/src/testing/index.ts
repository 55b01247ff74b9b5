/** The fake of a Mattermost server on loopback, and what the suites of the whole product need to know about the channel. */
import type { ChannelTesting } from '@sluice/testkit/channel-testing'
import { crashKind } from './crash-kind.ts'
import type { MattermostFake } from './fake.ts'
import { connect } from './section.ts'

export {
  MATTERMOST_BOT,
  MATTERMOST_CHANNEL,
  MATTERMOST_TOKEN,
  MATTERMOST_USER,
  type MattermostFake,
  type MattermostFakeOptions,
  type MattermostSaid,
  startMattermostFake,
} from './fake.ts'
export type { MattermostPost } from './fake-posts.ts'

export const testing: ChannelTesting<MattermostFake> = { connect: (nowMs) => connect({ nowMs }), crashKind }
