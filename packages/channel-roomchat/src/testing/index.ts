/** The fake of roomchat on loopback, and what the suites of the whole product need to know about the channel. */
import type { ChannelTesting } from '@sluice/testkit/channel-testing'
import { crashKind } from './crash-kind.ts'
import { type RoomchatFake, startRoomchatFake } from './fake.ts'
import { roomchatScheme } from './scheme.ts'
import { sectionOf } from './section.ts'
import { bodies, roomchatRequest, roomchatVectors } from './vectors.ts'

export {
  ROOMCHAT_APP_TOKEN,
  ROOMCHAT_SECRET,
  type RoomchatCredentials,
  type RoomchatFake,
  type RoomchatFakeOptions,
  type RoomchatSent,
  startRoomchatFake,
} from './fake.ts'
export { ROOMCHAT_BODY } from './vectors.ts'

export const testing: ChannelTesting<RoomchatFake> = {
  async connect() {
    const fake = await startRoomchatFake()
    return { fake, section: sectionOf(fake) }
  },
  crashKind,
  webhook: { schemes: { roomchat: roomchatScheme }, vectors: roomchatVectors, bodies, signedRequest: roomchatRequest },
}
