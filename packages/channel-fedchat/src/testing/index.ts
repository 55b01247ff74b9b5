/** The fake of a Matrix homeserver on loopback, and what the suites of the whole product need to know about the channel. */
import type { ChannelTesting } from '@sluice/testkit/channel-testing'
import { crashKind } from './crash-kind.ts'
import type { FedchatFake } from './fake.ts'
import { connect, connectToRooms } from './section.ts'

export {
  FEDCHAT_BOT,
  FEDCHAT_PASSWORD,
  FEDCHAT_PEOPLE,
  FEDCHAT_ROOM,
  FEDCHAT_TOKEN,
  type FedchatFake,
  type FedchatFakeOptions,
  type FedchatSaid,
  startFedchatFake,
} from './fake.ts'

export const testing: ChannelTesting<FedchatFake> = {
  connect: (nowMs) => connect({ nowMs }),
  crashKind,
  idle: { mibMax: 60, accountsMax: 1, connect: connectToRooms },
}
