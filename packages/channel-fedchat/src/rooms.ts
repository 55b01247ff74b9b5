/** The state of rooms in the channel: which ones it accepts, who is in them, and whether they are encrypted. */
import { BoundedMap } from '@sluice/kit'
import { list, type Members, members, parsedOrUndefined, text } from '@sluice/kit/foreign-json'
import { AppError, type Logger, sha256Hex } from '@sluice/sdk'
import { isRefused, type MatrixApi } from './api.ts'
import type { FedchatConfig } from './config.ts'
import type { RoomEncryption } from './crypto/requests.ts'
import type { Vault } from './vault.ts'

const ROOMS_MAX = 2000
const NAMES_MAX = 20_000
const ENCRYPTED = 'state/encrypted/'
const MEMBERS_BYTES_MAX = 32 * 1_048_576
/** The states of members that get the keys of a room. */
const MEMBERSHIPS = ['join', 'invite']

interface Room {
  /** Absent until it is asked for; null for a room without encryption. */
  encryption?: Members | null
  historyVisibility?: string
  /** The users in the room and those invited. Absent until they are needed. */
  members?: Map<string, string>
  joinedCount?: number
}

export class Rooms {
  readonly #api: MatrixApi
  readonly #vault: Vault
  readonly #config: FedchatConfig
  readonly #log: Logger
  readonly #rooms = new BoundedMap<string, Room>(ROOMS_MAX)
  /** The display names of users, by room and user. */
  readonly #names = new BoundedMap<string, string>(NAMES_MAX)
  /** The ids of the configured rooms, by the configured text. */
  readonly #ids = new Map<string, string>()
  /** The settings of rooms that were encrypted once; a homeserver cannot turn encryption off. */
  readonly #encrypted: Map<string, Members>

  private constructor(api: MatrixApi, vault: Vault, config: FedchatConfig, log: Logger, encrypted: Map<string, Members>) {
    this.#api = api
    this.#vault = vault
    this.#config = config
    this.#log = log
    this.#encrypted = encrypted
  }

  static async load(api: MatrixApi, vault: Vault, config: FedchatConfig, log: Logger): Promise<Rooms> {
    const records = await vault.read(ENCRYPTED)
    const encrypted = [...records.values()].map((value): [string, Members] => {
      const { room, content } = members(parsedOrUndefined(value))
      return [text(room), members(content)]
    })
    return new Rooms(api, vault, config, log, new Map(encrypted))
  }

  /** The configured rooms. */
  get configured(): readonly string[] {
    const { room_id: home, allowed_rooms: others } = this.#config
    return [...new Set([home, ...others.filter((room) => room !== '*')])]
  }

  get acceptsAll(): boolean {
    return this.#config.allowed_rooms.includes('*')
  }

  get acceptedIds(): readonly string[] {
    return [...new Set(this.#ids.values())]
  }

  isAccepted(room: string): boolean {
    return this.acceptsAll || this.acceptedIds.includes(room)
  }

  /** Asks for the ids of the configured aliases. Returns the rooms that are not known to the homeserver. */
  async resolve(signal: AbortSignal): Promise<readonly string[]> {
    const unknown: string[] = []
    for (const room of this.configured) {
      const id = room.startsWith('#') ? await this.#idOf(room, signal) : room
      if (id === undefined) unknown.push(room)
      else this.#ids.set(room, id)
    }
    return unknown
  }

  /** Returns the id of a room that a message goes to, which may be a configured alias. */
  async targetOf(to: string, signal: AbortSignal): Promise<string> {
    if (!to.startsWith('#')) return to
    const id = this.#ids.get(to) ?? (await this.#idOf(to, signal))
    if (id === undefined) throw new AppError('invalid_request', `The homeserver does not know the room ${to}`)
    this.#ids.set(to, id)
    return id
  }

  async #idOf(alias: string, signal: AbortSignal): Promise<string | undefined> {
    try {
      const { room_id: id } = await this.#api.client('GET', ['directory', 'room', alias], { signal })
      return text(id) || undefined
    } catch (error) {
      if (isRefused(error, 'M_NOT_FOUND')) return undefined
      throw error
    }
  }

  /** True if only the bot and one other member are in the room, so that every message is for the bot. */
  isDirect(room: string): boolean {
    return (this.#rooms.get(room)?.joinedCount ?? Number.POSITIVE_INFINITY) <= 2
  }

  /** Takes the numbers of members in a sync. */
  takeSummary(room: string, summary: unknown): void {
    const count = members(summary)['m.joined_member_count']
    if (typeof count === 'number') this.#of(room).joinedCount = count
  }

  /** Asks how many are in the room unless it is known: a sync tells it only when it changes. */
  async learnCount(room: string, signal: AbortSignal): Promise<void> {
    const known = this.#of(room)
    if (known.joinedCount !== undefined) return
    try {
      const { joined } = await this.#api.client('GET', ['rooms', room, 'joined_members'], { signal, answerBytesMax: MEMBERS_BYTES_MAX })
      known.joinedCount ??= Object.keys(members(joined)).length
    } catch (error) {
      if (!isRefused(error, 'M_FORBIDDEN', 'M_NOT_FOUND')) throw error
    }
  }

  /** Takes a state event of the room. Events must come in their order. */
  takeState(room: string, event: Members): void {
    const known = this.#of(room)
    const content = members(event.content)
    if (event.type === 'm.room.encryption') this.#takeEncryption(room, content)
    else if (event.type === 'm.room.history_visibility') known.historyVisibility = text(content.history_visibility)
    else if (event.type === 'm.room.member') {
      const user = text(event.state_key)
      known.members?.set(user, text(content.membership))
      if (content.membership === 'join') this.#names.set(`${room} ${user}`, text(content.displayname))
    }
  }

  /** Takes the name in an older event of a member, unless a newer one is known. */
  learnName(room: string, { type, state_key: user, content }: Members): void {
    const key = `${room} ${text(user)}`
    const { membership, displayname } = members(content)
    if (type === 'm.room.member' && membership === 'join' && !this.#names.has(key)) this.#names.set(key, text(displayname))
  }

  /** Returns the display name of a user in a room, which the homeserver sends with the messages of the user; empty without one. */
  nameOf(room: string, user: string): string {
    return this.#names.get(`${room} ${user}`) ?? ''
  }

  /** Forgets who is in the room, because changes may have been missed. */
  forgetMembers(room: string): void {
    delete this.#of(room).members
  }

  /** True for a room that is known to be encrypted. */
  wasEncrypted(room: string): boolean {
    return this.#encrypted.has(room)
  }

  /** Returns how messages to the room are encrypted; undefined for a room without encryption. */
  async encryptionOf(room: string, signal: AbortSignal): Promise<RoomEncryption | undefined> {
    const known = this.#of(room)
    if (known.encryption === undefined) {
      const content = await this.#stateOf(room, 'm.room.encryption', signal)
      if (content) this.#takeEncryption(room, content)
      else known.encryption ??= null
    }
    const content = this.#encrypted.get(room) ?? known.encryption
    if (!content) return undefined
    if (content.algorithm !== 'm.megolm.v1.aes-sha2') {
      throw new AppError('invalid_request', `The room ${room} is encrypted with ${text(content.algorithm)}, which is not known`)
    }
    known.historyVisibility ??= text((await this.#stateOf(room, 'm.room.history_visibility', signal))?.history_visibility)
    return { content, historyVisibility: known.historyVisibility }
  }

  /** Returns the users whose devices get the key of the room. */
  async recipientsIn(room: string, signal: AbortSignal): Promise<readonly string[]> {
    const known = this.#of(room)
    known.members ??= await this.#membersOf(room, signal)
    const { historyVisibility } = known
    return [...known.members].flatMap(([user, membership]) =>
      membership === 'join' || (membership === 'invite' && historyVisibility !== 'joined') ? [user] : [],
    )
  }

  async #membersOf(room: string, signal: AbortSignal): Promise<Map<string, string>> {
    const { chunk } = await this.#api.client('GET', ['rooms', room, 'members'], { signal, answerBytesMax: MEMBERS_BYTES_MAX })
    const entries = list(chunk).map((event): [string, string] => [
      text(members(event).state_key),
      text(members(members(event).content).membership),
    ])
    return new Map(entries.filter(([user, membership]) => user !== '' && MEMBERSHIPS.includes(membership)))
  }

  async #stateOf(room: string, type: string, signal: AbortSignal): Promise<Members | undefined> {
    try {
      return await this.#api.client('GET', ['rooms', room, 'state', type], { signal })
    } catch (error) {
      if (isRefused(error, 'M_NOT_FOUND')) return undefined
      throw error
    }
  }

  #takeEncryption(room: string, content: Members): void {
    const known = this.#encrypted.get(room)
    // An event without an algorithm would turn encryption off.
    if (text(content.algorithm) === '') return void this.#log.warn('encryption settings without an algorithm ignored', { room })
    this.#of(room).encryption = content
    if (JSON.stringify(known) === JSON.stringify(content)) return
    this.#encrypted.set(room, content)
    this.#vault.put(`${ENCRYPTED}${sha256Hex(room).slice(0, 32)}`, { room, content })
  }

  #of(room: string): Room {
    const known = this.#rooms.get(room) ?? {}
    this.#rooms.set(room, known)
    return known
  }
}
