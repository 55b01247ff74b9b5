/** Finds rooms whose rule this release cannot read (docs/rooms.md#rules). */
import { adviceOnUnreadable, parseRoomRule, ROOM_KEYS, ROOMS, type Store } from '@sluice/sdk'
import { type Check, warn } from './check.ts'

const ROOMS_MAX = 1000

/** Resolves to no check where all rules can be read. */
export async function checkRooms(store: Pick<Store, 'keyValue'>): Promise<Check[]> {
  const rules = await store.keyValue(ROOMS).list(ROOM_KEYS, ROOMS_MAX)
  return rules.flatMap(({ key, value }) => {
    const { unreadable } = parseRoomRule(value)
    if (unreadable.length === 0) return []
    const room = key.slice(ROOM_KEYS.length)
    const detail = `nobody is answered in ${room}, because this release cannot read parts of its rule: ${unreadable.join(', ')}`
    return [warn('rooms', detail, adviceOnUnreadable(room, unreadable))]
  })
}
