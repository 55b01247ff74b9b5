/** A request as the server would post it, signed with our own secret, so that a set-up is tried without the server. */
import { randomBytes } from 'node:crypto'
import { AppError, type Sample, type SampleRequest } from '@sluice/sdk'
import { isRoom } from './room.ts'
import type { Server } from './server.ts'
import { sign } from './signature.ts'

/** No room of any server. */
const ROOM = 'sample-room'

/** Throws `invalid_request` for what can be no room. */
export function sampleRequest({ sender, to, text, id, ignored }: Sample, { baseUrl, secret }: Server): SampleRequest {
  if (to !== undefined && !isRoom(to))
    throw new AppError('invalid_request', 'that is no token of a room; it stands in the address of the room')
  const body = JSON.stringify({
    type: ignored ? 'Like' : 'Create',
    actor: { type: 'Person', id: sender.includes('/') ? sender : `users/${sender}`, name: sender },
    object: {
      type: 'Note',
      id,
      name: 'message',
      content: JSON.stringify({ message: text, parameters: [] }),
      mediaType: 'text/markdown',
    },
    target: { type: 'Collection', id: to ?? ROOM, name: 'Sample' },
    ...(ignored && { content: '👍' }),
  })
  const headers = { 'content-type': 'application/json', 'x-nextcloud-talk-backend': `${baseUrl}/` }
  const answerable = to === undefined ? ({ unanswerable: true } as const) : {}
  if (!secret) return { headers, body, ...answerable }
  const random = randomBytes(48).toString('base64')
  return {
    headers: { ...headers, 'x-nextcloud-talk-random': random, 'x-nextcloud-talk-signature': sign(secret, random, body) },
    body,
    ...answerable,
  }
}
