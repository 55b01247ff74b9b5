/** The fake of DingTalk on loopback, and what the suites of the whole product need to know about the channel. */
import type { ChannelTesting } from '@sluice/testkit/channel-testing'
import { crashKind } from './crash-kind.ts'
import type { DingtalkFake } from './fake.ts'
import { connect } from './section.ts'

export { CLIENT, type DingtalkFake, type DingtalkSent, startDingtalkFake } from './fake.ts'

export const testing: ChannelTesting<DingtalkFake> = { connect: (nowMs) => connect({ nowMs }), crashKind }
