/** Starts the fake and connects the channel to it. */
import type { Connected } from '@sluice/testkit/channel-testing'
import { FEDCHAT_ROOM, FEDCHAT_TOKEN, type FedchatFake, type FedchatFakeOptions, startFedchatFake } from './fake.ts'

export const sectionOf = ({ url }: FedchatFake) => ({
  homeserver: url,
  access_token: FEDCHAT_TOKEN,
  room_id: FEDCHAT_ROOM,
  allowed_users: ['*'],
})

export async function connect(options: FedchatFakeOptions = {}): Promise<Connected<FedchatFake>> {
  const fake = await startFedchatFake(options)
  return { fake, section: sectionOf(fake) }
}
