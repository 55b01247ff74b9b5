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

const ROOMS = 50

/** An account that is in many encrypted rooms. */
export async function connectToRooms(nowMs: () => number): Promise<Connected<FedchatFake>> {
  const { fake, section } = await connect({ nowMs })
  const rooms = Array.from({ length: ROOMS }, (_, index) => fake.addRoom({ id: `!room-${index}`, isEncrypted: true }))
  return { fake, section: { ...section, allowed_rooms: rooms.map(({ id }) => id) } }
}
