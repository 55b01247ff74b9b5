/** Messages of roomchat: each request is signed with a nonce, and several senders share a room. */
import { randomBytes } from 'node:crypto'
import { hmacSha256 } from '@sluice/sdk'
import type { CrashKind, PostedRequest } from '@sluice/testkit/crash-kind'
import { startRoomchatFake } from './fake.ts'
import { sectionOf } from './section.ts'

const ROOMS = ['ops4room', 'dev4room'] as const
const BOT_NAME = 'Helper Bot'
const SENDERS = ['users/ada', 'users/bob', 'users/cleo', 'users/dan'] as const

export async function crashKind(): Promise<CrashKind> {
  const fake = await startRoomchatFake({ rooms: ROOMS })
  const bodies = new Map<string, string>()
  const roomOf = (sender: string): string => (sender < 'users/c' ? ROOMS[0] : ROOMS[1])
  const signed = (body: string): PostedRequest => {
    const random = randomBytes(48).toString('base64')
    const headers = {
      'content-type': 'application/json',
      'x-nextcloud-talk-random': random,
      'x-nextcloud-talk-signature': hmacSha256(fake.secret, random, body).toString('hex'),
      'x-nextcloud-talk-backend': `${fake.url}/`,
    }
    return { path: '/roomchat', headers, body }
  }
  return {
    fake,
    section: { ...sectionOf(fake), bot_name: BOT_NAME },
    senders: SENDERS,
    write({ mark, sender, text }) {
      const room = roomOf(sender)
      const { id, body } = fake.write({ text, actor: sender, room })
      bodies.set(mark, body)
      return `${room}/${id}`
    },
    request([{ mark }]) {
      const body = bodies.get(mark)
      if (body === undefined) throw new Error(`The message ${mark} was not written.`)
      return signed(body)
    },
    // Bots are not participants, so clients offer no mention of them: people write the name.
    mention({ sender, text }) {
      const { id, body } = fake.write({ text: `@${BOT_NAME} ${text}`, actor: sender, room: ROOMS[0] })
      return { id: `${ROOMS[0]}/${id}`, request: signed(body) }
    },
    delivered: () => fake.sent.map(({ text }) => text),
  }
}
