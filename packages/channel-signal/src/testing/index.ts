/** The fake of signal-cli on loopback, and what the suites of the whole product need to know about the channel. */
import type { ChannelTesting } from '@sluice/testkit/channel-testing'
import { crashKind } from './crash-kind.ts'
import type { SignalFake } from './fake.ts'
import { connect } from './section.ts'

export { SIGNAL_ACCOUNT, type SignalFake, type SignalFakeOptions, type SignalSent, startSignalFake, uuidOf } from './fake.ts'

export const testing: ChannelTesting<SignalFake> = { connect: (nowMs) => connect(nowMs), crashKind }
