/** The fake of QQ on loopback, and what the suites of the whole product need to know about the channel. */
import type { ChannelTesting } from '@sluice/testkit/channel-testing'
import { crashKind } from './crash-kind.ts'
import type { QqFake } from './fake.ts'
import { qqScheme } from './scheme.ts'
import { connect } from './section.ts'
import { bodies, qqRequest, qqVectors } from './vectors.ts'

export { BOT, type QqFake, type QqSent, startQqFake } from './fake.ts'

export const testing: ChannelTesting<QqFake> = {
  connect: (nowMs) => connect({ nowMs }),
  crashKind,
  webhook: { schemes: { qq: qqScheme }, vectors: qqVectors, bodies, signedRequest: qqRequest },
}
