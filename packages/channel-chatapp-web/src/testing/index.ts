/** The fake of WhatsApp Web on loopback, and what the suites of the whole product need to know about the channel. */
import type { ChannelTesting } from '@sluice/testkit/channel-testing'
import { crashKind } from './crash-kind.ts'
import type { WebFake } from './fake.ts'
import { connect } from './section.ts'

export { BOT_LID, BOT_NUMBER, GROUP, startWebFake, type WebFake, type WebFakeOptions, type WebSay, type WebSent } from './fake.ts'
export { sectionOf } from './section.ts'

export const testing: ChannelTesting<WebFake> = { connect: (nowMs) => connect({ nowMs }), crashKind }
