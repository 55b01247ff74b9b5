/** The rules of a room: a conversation of several people on a channel. */
import * as v from 'valibot'
import { type RoomPlace, roomId } from '../values/session-key.ts'

export const ROOM_SESSIONS = ['shared', 'person'] as const

/** What an operator decides for one room. An absent member leaves it to the configuration of the channel. */
export const roomRuleSchema = v.strictObject({
  session: v.exactOptional(
    v.pipe(v.picklist(ROOM_SESSIONS), v.description('shared: one conversation for all people of the room; person: one for each of them')),
  ),
})
export type RoomRule = v.InferOutput<typeof roomRuleSchema>

/** The owner of the keys of rooms in the store. */
export const ROOMS = 'gateway:rooms'

const PREFIX = 'room:'

/** The key of a room in the store. */
export const roomKey = (room: RoomPlace): string => PREFIX + roomId(room)
