/** Which shard stored work belongs to. The holder of the shard's lease recovers, runs and ends the work (docs/contract.md#ownership). */

import type { NewReply } from '../channel/reply.ts'
import { SHARDS } from '../values/lease.ts'
import { channelOwner, escapedParts, parseAgentKey, parseChatSession } from '../values/session-key.ts'

/** Returns the shard of a text, 0 to 255: the 32-bit FNV-1a hash of its UTF-8 bytes, folded to 8 bits by two exclusive ors. */
export function shardOf(key: string): number {
  let hash = 0x811c9dc5
  for (const byte of Buffer.from(key)) hash = Math.imul(hash ^ byte, 0x01000193)
  hash ^= hash >>> 16
  return (hash ^ (hash >>> 8)) & (SHARDS - 1)
}

/** Returns the shard of a conversation: of the messages from it and the replies to it. */
export const shardOfConversation = ({ channel, account, to }: Pick<NewReply, 'channel' | 'account' | 'to'>): number =>
  shardOf(`${channelOwner(channel)}/${escapedParts([account, to.to])}`)

/** The beginning of the key of the session that the steps of a procedure run share: `sop:<run>`. */
const RUN_SESSION = 'sop:'

const CHANGES = 'change:'
const COMMANDS = 'command:'

/** Returns the lane of the changes of earlier messages of a session, in the place of a session. Changes overtake the turn that runs. */
export const changeLane = (session: string): string => `${CHANGES}${session}`

/** Returns the lane of the commands of a session, in the place of a session. Commands overtake the turns that run and wait. */
export const commandLane = (session: string): string => `${COMMANDS}${session}`

/** Returns the session of a lane of changes or commands; any other lane is a session. */
export function sessionOfLane(lane: string): string {
  const before = [CHANGES, COMMANDS].find((one) => lane.startsWith(one)) ?? ''
  return lane.slice(before.length)
}

/**
 * Returns the shard of a session. A chat session has the shard of its conversation, whatever its thread, sender and agent. The session
 * of a procedure run has the shard of the run's id. The changes and commands of a session have its shard, so that one node has them and the
 * messages that they are about.
 */
export function shardOfSession(lane: string): number {
  const session = sessionOfLane(lane)
  const chat = parseChatSession(session)
  if (chat) return shardOfConversation({ ...chat, to: { to: chat.conversation } })
  const { key } = parseAgentKey(session)
  return shardOf(key.startsWith(RUN_SESSION) ? key.slice(RUN_SESSION.length) : session)
}

/**
 * Whether the turns of a session run only on the owner of its shard, in a cluster. True for a chat session and for a procedure run. Turns
 * of any other session run on the node that received the request.
 */
export const runsOnShard = (session: string): boolean =>
  parseChatSession(session) !== undefined || parseAgentKey(session).key.startsWith(RUN_SESSION)

/** Returns the shard of a turn: that of its session, or of its id when it has none. */
export const shardOfTurn = (session: string | null, id: string): number => (session === null ? shardOf(id) : shardOfSession(session))
