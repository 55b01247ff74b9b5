/** Messages of roomchat: each request is signed with a nonce, and several senders share a room. */
import { randomBytes } from 'node:crypto'
import { startRoomchatFake } from '@sluice/channel-roomchat/testing'
import { hmacSha256 } from '@sluice/sdk'
import type { Kind } from '../kind.ts'
import { textOf } from '../marks.ts'

const ROOMS = ['ops4room', 'dev4room'] as const
const SENDERS = ['users/ada', 'users/bob', 'users/cleo', 'users/dan'] as const

export async function roomchatKind(): Promise<Kind> {
  const fake = await startRoomchatFake({ rooms: ROOMS })
  const bodies = new Map<string, string>()
  const roomOf = (sender: string): string => (sender < 'users/c' ? ROOMS[0] : ROOMS[1])
  return {
    name: 'roomchat',
    config: `[channels_config.roomchat]
base_url = "${fake.url}"
app_token = "${fake.appToken}"
webhook_secret = "${fake.secret}"
allowed_users = ["*"]`,
    senders: SENDERS,
    batchMax: 1,
    isPulled: false,
    write(draft) {
      const room = roomOf(draft.sender)
      const { id, body } = fake.write({ text: textOf(draft), actor: draft.sender, room })
      bodies.set(draft.mark, body)
      return { ...draft, kind: 'roomchat', id: `${room}/${id}` }
    },
    request([message]) {
      const body = bodies.get(message?.mark ?? '')
      if (body === undefined) throw new Error('A request of this kind carries one message; got none.')
      const random = randomBytes(48).toString('base64')
      const headers = {
        'content-type': 'application/json',
        'x-nextcloud-talk-random': random,
        'x-nextcloud-talk-signature': hmacSha256(fake.secret, random, body).toString('hex'),
        'x-nextcloud-talk-backend': `${fake.url}/`,
      }
      return { path: '/roomchat', headers, body }
    },
    provider: fake,
    delivered: () => fake.sent.map(({ text }) => text),
  }
}
