/** The fake of an IRC server on loopback, and what the suites of the whole product need to know about the channel. */
import type { ChannelTesting } from '@sluice/testkit/channel-testing'
import { crashKind } from './crash-kind.ts'
import type { IrcFake } from './fake.ts'
import { connect } from './section.ts'

export { IRC_PASSWORD, type IrcFake, type IrcFakeOptions, type IrcMessage, type IrcSaid, startIrcFake } from './fake.ts'

export const testing: ChannelTesting<IrcFake> = { connect: (nowMs) => connect({ nowMs }), crashKind }
