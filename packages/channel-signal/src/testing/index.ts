/** The fake of signal-cli on loopback, and what the suites of the whole product need to know about the channel. */
import type { ChannelTesting } from '@sluice/testkit/channel-testing'
import type { SignalFake } from './fake.ts'
import { connect } from './section.ts'

export { SIGNAL_ACCOUNT, type SignalFake, type SignalSent, startSignalFake } from './fake.ts'

/** It has no messages for the crash suite: signal-cli forgets a message that it wrote to a connection, also when the reader dies. */
export const testing: ChannelTesting<SignalFake> = { connect }
