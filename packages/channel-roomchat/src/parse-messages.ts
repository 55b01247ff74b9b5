/** Bytes of a request to the message in it; what bots write, what is no message, and what nobody could answer is dropped. */

import { members, parseJson } from '@sluice/kit/foreign-json'
import type { Inbound } from '@sluice/sdk'
import { type Post, postOf } from './post.ts'
import { isRoom } from './room.ts'
import { isBot, normaliseSender } from './sender.ts'

export interface Ours {
  readonly account: string
  /** Empty: nothing is dropped for its name. */
  readonly botName: string
}

/** Throws `invalid_request` for what is no JSON. */
export function parseMessages(body: Uint8Array, { account, botName }: Ours): Inbound[] {
  const post = postOf(members(parseJson(body)))
  if (!post || isBot(post.actor) || isNamed(post, botName)) return []
  const { room, id, text, attachments, sentAtMs } = post
  const sender = normaliseSender(post.actor)
  if (!isRoom(room) || id === '' || sender === '' || (text === '' && attachments.length === 0)) return []
  return [
    {
      // Servers number messages across rooms, which no document promises.
      id: `${room}/${id}`,
      account,
      sender,
      to: { to: room, replyTo: id },
      text,
      ...(sentAtMs !== undefined && { sentAtMs }),
      ...(attachments.length > 0 && { attachments }),
    },
  ]
}

const isNamed = ({ actorName }: Post, botName: string): boolean => {
  const name = botName.trim().toLowerCase()
  return name !== '' && actorName.trim().toLowerCase() === name
}
