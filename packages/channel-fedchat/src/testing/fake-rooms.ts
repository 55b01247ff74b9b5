/** Rooms of the fake homeserver: their events in order, their state, and who is in them (client-server API, "Rooms" and "Events"). */
import { type Json, Refused } from './fake-accounts.ts'

export interface RoomEvent extends Json {
  readonly event_id: string
  readonly type: string
  readonly sender: string
  readonly origin_server_ts: number
  readonly content: Json
  readonly state_key?: string
  readonly unsigned?: Json
}

export interface Entry {
  readonly seq: number
  event: RoomEvent
}

export interface FakeRoom {
  readonly id: string
  readonly timeline: Entry[]
  /** By type and state key. */
  readonly state: Map<string, Entry>
}

export interface NewEvent {
  readonly type: string
  readonly sender: string
  readonly content: Json
  readonly stateKey?: string
  readonly redacts?: string
}

/** Section "Size limits": the complete event. */
const EVENT_BYTES_MAX = 65_536

const memberContent = (userId: string, membership: string): Json => ({
  membership,
  ...(membership === 'join' && { displayname: `Name of ${userId}` }),
})

export class FakeRooms {
  readonly rooms = new Map<string, FakeRoom>()
  readonly aliases = new Map<string, string>()
  readonly #nextSeq: () => number
  readonly #nowMs: () => number
  readonly #serverName: string
  #count = 0

  constructor(nextSeq: () => number, nowMs: () => number, serverName: string) {
    this.#nextSeq = nextSeq
    this.#nowMs = nowMs
    this.#serverName = serverName
  }

  create(creator: string, { id = `!room${++this.#count}:${this.#serverName}`, isEncrypted = false } = {}): FakeRoom {
    const room: FakeRoom = { id, timeline: [], state: new Map() }
    this.rooms.set(id, room)
    const state = (type: string, content: Json, stateKey = '') => this.add(room, { type, sender: creator, content, stateKey })
    state('m.room.create', { room_version: '11' })
    state('m.room.member', memberContent(creator, 'join'), creator)
    state('m.room.history_visibility', { history_visibility: 'shared' })
    if (isEncrypted) this.encrypt(room, creator)
    return room
  }

  encrypt(room: FakeRoom, sender: string): void {
    this.add(room, {
      type: 'm.room.encryption',
      sender,
      content: { algorithm: 'm.megolm.v1.aes-sha2', rotation_period_ms: 604_800_000, rotation_period_msgs: 100 },
      stateKey: '',
    })
  }

  room(id: string): FakeRoom {
    const room = this.rooms.get(id)
    if (!room) throw new Refused(403, 'M_FORBIDDEN', `You are not in the room ${id}`)
    return room
  }

  membership(room: FakeRoom, userId: string): string {
    return String(room.state.get(`m.room.member|${userId}`)?.event.content.membership ?? 'leave')
  }

  members(room: FakeRoom, ...memberships: string[]): string[] {
    return [...room.state.values()].flatMap(({ event: { type, state_key: userId = '', content } }) =>
      type === 'm.room.member' && memberships.includes(String(content.membership)) ? [userId] : [],
    )
  }

  /** Throws unless the user is in the room. */
  joined(id: string, userId: string): FakeRoom {
    const room = this.room(id)
    if (this.membership(room, userId) !== 'join') throw new Refused(403, 'M_FORBIDDEN', `User ${userId} not in room ${id}`)
    return room
  }

  isEncrypted(room: FakeRoom): boolean {
    return room.state.has('m.room.encryption|')
  }

  setMembership(room: FakeRoom, userId: string, membership: string, sender = userId): Entry {
    return this.add(room, { type: 'm.room.member', sender, content: memberContent(userId, membership), stateKey: userId })
  }

  add(room: FakeRoom, { type, sender, content, stateKey, redacts }: NewEvent): Entry {
    const seq = this.#nextSeq()
    const previous = stateKey === undefined ? undefined : room.state.get(`${type}|${stateKey}`)
    const event: RoomEvent = {
      event_id: `$e${seq}-${room.id.slice(1, 8)}`,
      type,
      sender,
      origin_server_ts: this.#nowMs(),
      content: redacts === undefined ? content : { ...content, redacts },
      ...(stateKey !== undefined && { state_key: stateKey }),
      unsigned: { age: 1, ...(previous && { prev_content: previous.event.content }) },
    }
    if (Buffer.byteLength(JSON.stringify(event)) > EVENT_BYTES_MAX) throw new Refused(413, 'M_TOO_LARGE', 'event too large')
    const entry = { seq, event }
    if (stateKey !== undefined) room.state.set(`${type}|${stateKey}`, entry)
    room.timeline.push(entry)
    return entry
  }

  /** Section "Redactions": the content of the event is removed. */
  redact(room: FakeRoom, sender: string, target: string, content: Json): Entry {
    const found = this.find(room, target)
    if (found.event.sender !== sender && this.creatorOf(room) !== sender) throw new Refused(403, 'M_FORBIDDEN', 'You cannot redact it')
    const entry = this.add(room, { type: 'm.room.redaction', sender, content, redacts: target })
    found.event = { ...found.event, content: {}, unsigned: { redacted_because: entry.event } }
    return entry
  }

  find(room: FakeRoom, id: string): Entry {
    const found = room.timeline.find(({ event }) => event.event_id === id)
    if (!found) throw new Refused(404, 'M_NOT_FOUND', 'Event not found.')
    return found
  }

  creatorOf(room: FakeRoom): string {
    return room.timeline[0]?.event.sender ?? ''
  }
}
