/** The fake of WeCom on loopback, and what the suites of the whole product need to know about the channel. */
import type { ChannelTesting } from '@sluice/testkit/channel-testing'
import { crashKind } from './crash-kind.ts'
import type { WecomFake } from './fake.ts'
import { wecomScheme } from './scheme.ts'
import { connect } from './section.ts'
import { bodies, wecomVectors } from './vectors.ts'

export { BOT, ROBOT_KEY, startWecomFake, type WecomFake, type WecomSent } from './fake.ts'
export { APP } from './seal.ts'

export const testing: ChannelTesting<WecomFake> = {
  connect: (nowMs) => connect({ nowMs }),
  crashKind,
  webhook: { schemes: { wecom: wecomScheme }, vectors: wecomVectors, bodies },
}
