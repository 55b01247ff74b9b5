/** The fake of roomchat on loopback, and what the suites of the whole product need to know about the channel. */
import type { ChannelTesting } from '@sluice/testkit/channel-testing'
import { createWebhook } from '../webhook.ts'
import { crashKind } from './crash-kind.ts'
import { ROOMCHAT_SECRET, type RoomchatFake, startRoomchatFake } from './fake.ts'
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
  webhook: {
    bare: () => createWebhook({ secret: ROOMCHAT_SECRET, backends: ['https://cloud.example'], account: 'cloud.example', botName: '' }),
    schemes: { roomchat: roomchatScheme },
    vectors: roomchatVectors,
    bodies,
    signedRequest: roomchatRequest,
  },
}
