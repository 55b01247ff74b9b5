/** The fake relay on loopback, and what the suites of the whole product need to know about the channel. */
import type { ChannelTesting } from '@sluice/testkit/channel-testing'
import { crashKind } from './crash-kind.ts'
import type { RelaynetFake } from './fake.ts'
import { connect } from './section.ts'

export { type RelaynetFake, type RelaynetFakeOptions, startRelaynetFake } from './fake.ts'
export { BOT, type Event, pubkeyOf, read, type Said, secretKeyOfPerson, write } from './people.ts'
export { BOT_KEY, sectionOf } from './section.ts'

export const testing: ChannelTesting<RelaynetFake> = { connect: (nowMs) => connect({ nowMs }), crashKind }
