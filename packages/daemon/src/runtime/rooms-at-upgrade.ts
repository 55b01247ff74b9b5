/** Keeps the conversations of rooms as an earlier release began them: one for each person. */
import { isDeepStrictEqual } from 'node:util'
import { type Logger, parseChatSession, ROOMS, type RoomRule, roomKey, type SessionRow, type Store } from '@sluice/sdk'

const DONE = 'upgraded'
const PAGE_ROWS = 500
const OF_PERSON: RoomRule = { session: 'person' }

/**
 * At the first start of this release, gives each room that has a conversation the rule that each of its people goes on with an own one. Must
 * run before the first message. A conversation whose id is that of its person is a direct chat, which needs no rule.
 */
export async function keepRoomsOfPersons({ store, log }: { readonly store: Pick<Store, 'keyValue' | 'sessions'>; readonly log: Logger }) {
  const rooms = store.keyValue(ROOMS)
  if ((await rooms.get(DONE)) === true) return
  const rules = new Map<string, RoomRule | true>()
  for (let before: SessionRow | undefined; ; ) {
    const page: SessionRow[] = await store.sessions.list({ limit: PAGE_ROWS, prefix: 'channel:', ...(before && { before }) })
    for (const { id } of page) {
      const chat = parseChatSession(id)
      if (chat?.sender !== undefined && chat.sender !== chat.conversation) rules.set(roomKey(chat), OF_PERSON)
    }
    before = page.at(-1)
    if (page.length < PAGE_ROWS) break
  }
  const known = rules.size
  // The mark goes last, so that a crash repeats the whole.
  for (const [key, rule] of rules) if (!isDeepStrictEqual(await rooms.get(key), rule)) await rooms.set(key, rule)
  await rooms.set(DONE, true)
  if (known > 0)
    log.info('The people of each room that has conversations keep one of their own. New rooms have one for all of their people.', {
      rooms: known,
      change: 'sluice rooms set <id> session=shared',
    })
}
