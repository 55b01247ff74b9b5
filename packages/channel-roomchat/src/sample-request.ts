/** A request as the server would post it, signed with our own secret, so that a set-up is tried without the server. */
import { randomBytes } from 'node:crypto'
import type { Sample, SampleRequest } from '@sluice/sdk'
import type { Server } from './server.ts'
import { sign } from './signature.ts'

/** No room of any server; an answer to a sample ends there. */
const ROOM = 'sample-room'

export function sampleRequest({ sender, text, id, ignored }: Sample, { baseUrl, secret }: Server): SampleRequest {
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
    target: { type: 'Collection', id: ROOM, name: 'Sample' },
    ...(ignored && { content: '👍' }),
  })
  const headers = { 'content-type': 'application/json', 'x-nextcloud-talk-backend': `${baseUrl}/` }
  if (!secret) return { headers, body }
  const random = randomBytes(48).toString('base64')
  return {
    headers: { ...headers, 'x-nextcloud-talk-random': random, 'x-nextcloud-talk-signature': sign(secret, random, body) },
    body,
  }
}
