/** The answer of the fake homeserver to a sync (client-server API, "Syncing", "Lazy-loading room members" and "Filtering"). */
import { type FakeAccounts, type FakeDevice, type Json, oneTimeCounts, Refused } from './fake-accounts.ts'
import type { Entry, FakeRoom, FakeRooms } from './fake-rooms.ts'

/** The most messages to a device in one answer. */
const TO_DEVICE_MAX = 100

interface EventFilter {
  readonly limit?: number
  readonly rooms?: readonly string[]
  readonly lazy_load_members?: boolean
  readonly include_redundant_members?: boolean
}

interface Filter extends EventFilter {
  readonly room?: { readonly rooms?: readonly string[]; readonly timeline?: EventFilter; readonly state?: EventFilter }
}

export interface SyncRequest {
  readonly device: FakeDevice
  /** Undefined for an initial sync. */
  readonly since: number | undefined
  readonly filter: Filter
}

export const tokenAt = (seq: number): string => `s${seq}`

export function seqOf(token: string): number {
  const found = /^s(\d{1,15})$/.exec(token)?.[1]
  if (found === undefined) throw new Refused(400, 'M_INVALID_PARAM', `Invalid stream token ${token}`)
  return Number(found)
}

export function readFilter(text: string | null): Filter {
  if (text === null || !text.startsWith('{')) return {}
  try {
    return JSON.parse(text) as Filter
  } catch {
    throw new Refused(400, 'M_BAD_JSON', 'The filter is not JSON')
  }
}

/** Returns the answer, and whether it has news. */
export function answerSync(
  accounts: FakeAccounts,
  rooms: FakeRooms,
  { device, since, filter }: SyncRequest,
  now: number,
): { readonly body: Json; readonly hasNews: boolean } {
  const after = since ?? 0
  // A sync confirms what the one before has brought.
  device.inbox = device.inbox.filter(({ seq }) => seq > after)
  const toDevice = device.inbox.slice(0, TO_DEVICE_MAX)
  const join: Record<string, Json> = {}
  const invite: Record<string, Json> = {}
  for (const room of rooms.rooms.values()) {
    const membership = rooms.membership(room, device.userId)
    if (filter.room?.rooms && !filter.room.rooms.includes(room.id)) continue
    if (membership === 'join') {
      const answer = joinedRoom(rooms, room, device.userId, since, filter)
      if (answer) join[room.id] = answer
    }
    const invited = room.state.get(`m.room.member|${device.userId}`)
    if (membership === 'invite' && invited && invited.seq > after) {
      invite[room.id] = { invite_state: { events: [...room.state.values()].map(({ event }) => stripped(event)) } }
    }
  }
  const changed = since === undefined ? [] : changedLists(accounts, rooms, device.userId, since)
  // Later messages to the device come with the next sync, whose position is that of the last one here.
  const last = toDevice.length === TO_DEVICE_MAX ? (toDevice.at(-1)?.seq ?? now) : now
  const next = device.inbox.length > toDevice.length && Object.keys(join).length === 0 ? last : now
  const body = {
    next_batch: tokenAt(next),
    rooms: { join, invite, leave: {} },
    to_device: { events: (next === now ? device.inbox : toDevice).map(({ event }) => event) },
    device_lists: { changed, left: [] },
    device_one_time_keys_count: oneTimeCounts(device),
    device_unused_fallback_key_types: [...device.fallbackKeys].flatMap(([type, { isUsed }]) => (isUsed ? [] : [type])),
  }
  const hasNews = toDevice.length > 0 || changed.length > 0 || Object.keys(join).length > 0 || Object.keys(invite).length > 0
  return { body, hasNews }
}

function joinedRoom(rooms: FakeRooms, room: FakeRoom, userId: string, since: number | undefined, filter: Filter): Json | undefined {
  const joinedSeq = room.state.get(`m.room.member|${userId}`)?.seq ?? 0
  // A room that is new to the user comes as in an initial sync.
  const isNew = since === undefined || joinedSeq > since
  const { timeline: wanted = {}, state: wantedState = {} } = filter.room ?? {}
  const isIn = ({ rooms: only }: EventFilter): boolean => !only || only.includes(room.id)
  const events = isIn(wanted) ? room.timeline.filter(({ seq }) => isNew || seq > since) : []
  const limit = wanted.limit ?? 10
  const shown = limit === 0 ? [] : events.slice(-limit)
  const first = shown[0]?.seq ?? 0
  const senders = new Set(shown.map(({ event }) => event.sender))
  const isWanted = ({ event }: Entry): boolean =>
    wantedState.lazy_load_members !== true ||
    event.type !== 'm.room.member' ||
    senders.has(event.state_key ?? '') ||
    event.state_key === userId
  const isRedundant = ({ event }: Entry): boolean =>
    wantedState.include_redundant_members === true && event.type === 'm.room.member' && senders.has(event.state_key ?? '')
  const state = [...room.state.values()].filter(
    (entry) => isIn(wantedState) && entry.seq < first && (isNew || entry.seq > since || isRedundant(entry)) && isWanted(entry),
  )
  if (!isNew && events.length === 0) return undefined
  // "RoomSummary": a homeserver may leave out the numbers that have not changed since the last sync.
  const hasNewMembers = isNew || events.some(({ event }) => event.type === 'm.room.member')
  return {
    ...(hasNewMembers && {
      summary: {
        'm.joined_member_count': rooms.members(room, 'join').length,
        'm.invited_member_count': rooms.members(room, 'invite').length,
      },
    }),
    state: { events: state.map(({ event }) => event) },
    timeline: {
      events: shown.map(({ event }) => event),
      limited: events.length > shown.length,
      prev_batch: tokenAt(Math.max(0, first - 1)),
    },
    ephemeral: { events: [] },
    account_data: { events: [] },
    unread_notifications: { highlight_count: 0, notification_count: 0 },
  }
}

/** Users who share an encrypted room with the asker, and whose devices or rooms have changed. */
function changedLists(accounts: FakeAccounts, rooms: FakeRooms, userId: string, since: number): string[] {
  const shared = [...rooms.rooms.values()].filter((room) => rooms.isEncrypted(room) && rooms.membership(room, userId) === 'join')
  const changed = accounts.listChanges.filter(({ seq }) => seq > since).map(({ userId: user }) => user)
  const cameIn = shared.flatMap((room) =>
    room.timeline.flatMap(({ seq, event }) => (seq > since && event.type === 'm.room.member' ? [event.state_key ?? ''] : [])),
  )
  const isShared = (user: string): boolean => user === userId || shared.some((room) => rooms.membership(room, user) === 'join')
  return [...new Set([...changed, ...cameIn])].filter(isShared)
}

const stripped = ({ type, sender, content, state_key }: Entry['event']): Json => ({ type, sender, content, state_key })
