/** Finds the rules of a room, and judges its messages. A direct chat has no rules, and costs no read. */
import { BoundedMap } from '@sluice/kit'
import {
  adviceOnUnreadable,
  type Channel,
  type Inbound,
  isAllowed,
  type Logger,
  parseRoomRule,
  ROOMS,
  type RoomPlace,
  type RoomRule,
  roomId,
  roomKey,
  roomOwner,
  type Store,
  sharedRoom,
} from '@sluice/sdk'

/** The keys of a channel for rooms without a rule. */
export interface RoomDefaults {
  /** Whether the people of a room share one conversation. */
  readonly isShared: boolean
  /** Whether messages that are not addressed to the bot are kept for the next turn. */
  readonly overhears: boolean
}

export interface RoomsOptions {
  readonly store: Pick<Store, 'keyValue'>
  rooms(channel: string): RoomDefaults
  /** Absent: no room is logged whose rule cannot be read. */
  readonly log?: Pick<Logger, 'warn'>
}

/** A room with the rule in force. */
export interface Room extends RoomDefaults {
  readonly place: RoomPlace
  readonly rule: RoomRule
  /** The parts of the stored rule that this release can read; absent where they are the rule in force. */
  readonly readable?: RoomRule
  /** The parts of the stored rule that this release cannot read. */
  readonly unreadable?: readonly string[]
}

const WARNED_MAX = 1000

/** Whether a message comes from a conversation of several people. A channel that cannot tell has direct chats only. */
export const isInRoom = ({ addressed }: Pick<Inbound, 'addressed'>): boolean => addressed !== undefined && addressed !== 'direct'

/** The ids of messages that the daemon sends itself in the name of a sender. */
const REMINDERS = 'schedule:'

export const isReminder = ({ id }: Pick<Inbound, 'id'>): boolean => id.startsWith(REMINDERS)

/**
 * Whether other people may read the answer to a message. A reminder of an earlier release says nothing about how it is addressed: only a
 * conversation that is named like its person is known to be direct.
 */
export const isReadByOthers = (message: Pick<Inbound, 'id' | 'addressed' | 'sender' | 'to'>): boolean =>
  isInRoom(message) || (isUnaddressed(message) && message.to.to !== message.sender)

const isUnaddressed = (message: Pick<Inbound, 'id' | 'addressed'>): boolean => message.addressed === undefined && isReminder(message)

export class Rooms {
  readonly #options: RoomsOptions
  /** The rooms whose rule the log has been told about. */
  readonly #warned = new BoundedMap<string, true>(WARNED_MAX)

  constructor(options: RoomsOptions) {
    this.#options = options
  }

  /** Returns the room of a conversation with several people. */
  async at(place: RoomPlace): Promise<Room> {
    const { rule, readable, unreadable } = parseRoomRule(await this.#options.store.keyValue(ROOMS).get(roomKey(place)))
    if (unreadable.length > 0) this.#warn(place, unreadable)
    const { isShared, overhears } = this.#options.rooms(place.channel)
    return { place, rule, isShared: rule.session === undefined ? isShared : rule.session === 'shared', overhears, readable, unreadable }
  }

  #warn(place: RoomPlace, unreadable: readonly string[]): void {
    const room = roomId(place)
    if (this.#warned.get(room)) return
    this.#warned.set(room, true)
    this.#options.log?.warn('The rule of a room has parts that this release cannot read, so that nobody is answered there.', {
      room,
      parts: unreadable.join(', '),
      change: adviceOnUnreadable(room, unreadable),
    })
  }

  /** Resolves to undefined for a direct chat. A reminder that says nothing about how it is addressed may be in a room. */
  async of({ name }: Channel, message: Inbound, session: string): Promise<Room | undefined> {
    if (!isInRoom(message) && !isUnaddressed(message) && !sharedRoom(session)) return undefined
    return this.at({ channel: name, account: message.account, conversation: message.to.to })
  }
}

/**
 * Returns the only tools that turns of a room call; undefined for all tools. Where a part of the rule cannot be read, it may name fewer tools than
 * are known: then a reminder, which still runs, calls none.
 */
export const toolsOf = ({ rule: { tools }, unreadable = [] }: Pick<Room, 'rule' | 'unreadable'>): readonly string[] | undefined =>
  tools ?? (unreadable.length > 0 ? [] : undefined)

/** Which messages of a room are answered. */
export const respondsTo = ({ rule: { respond = 'always' } }: Pick<Room, 'rule'>) => respond

/** `judge`: a turn that may end with silence. `overheard`: kept for the next turn. `ignored`: dropped before any write. */
export type RoomVerdict = 'turn' | 'judge' | 'overheard' | 'ignored'

/** Whether the rule of a room lets a person do nothing there. */
export const isLeftOut = (channel: Channel, room: Pick<Room, 'rule'>, message: Pick<Inbound, 'sender'>): boolean =>
  respondsTo(room) === 'never' || isNotNamed(channel, room, message)

const isNotNamed = (channel: Channel, { rule: { people } }: Pick<Room, 'rule'>, { sender }: Pick<Inbound, 'sender'>): boolean =>
  people !== undefined && !isOneOf(channel, people, sender)

/**
 * Returns why a message that waited gets no turn by the rule of now; undefined where it gets one. A reminder was asked for before, and also
 * runs in a room where no message is answered.
 */
export function reasonToEnd(channel: Channel, room: Pick<Room, 'rule'>, message: Pick<Inbound, 'sender' | 'id'>): string | undefined {
  if (isNotNamed(channel, room, message)) return 'the rule of the room leaves out its sender'
  return respondsTo(room) === 'never' && !isReminder(message) ? 'the rule of the room answers no messages' : undefined
}

/** Judges a message of a sender whom the allowlist of the channel admits. */
export function judgeInRoom(channel: Channel, room: Room, message: Pick<Inbound, 'sender' | 'addressed' | 'overheardOnly'>): RoomVerdict {
  const { addressed, overheardOnly = false } = message
  const respond = respondsTo(room)
  if (isLeftOut(channel, room, message)) return 'ignored'
  if (!overheardOnly && (addressed !== 'overheard' || respond === 'always')) return 'turn'
  if (!overheardOnly && respond === 'judge') return 'judge'
  return room.isShared && room.overhears ? 'overheard' : 'ignored'
}

/** Whether the turn of a message may end without an answer: that of a reminder, or of a message whose every piece the agent judges. */
export const mayBeSilent = (channel: Channel, message: Inbound, room: Room | undefined): boolean =>
  isReminder(message) ||
  (room !== undefined && (message.pieces ?? [message]).every((piece) => judgeInRoom(channel, room, piece) === 'judge'))

const isOneOf = (channel: Channel, people: readonly string[], sender: string): boolean =>
  isAllowed(
    people,
    sender,
    (entry) => channel.normalise?.(entry) ?? entry,
    (entry, value) => channel.matches?.(entry, value) ?? false,
  )

/** The limits of a room that count a turn of any person there; no member where the rule has none. */
export function roomLimits({ place, rule: { turns_per_hour = 0, usd_per_day = 0 } }: Room) {
  return turns_per_hour + usd_per_day === 0 ? {} : { room: { key: roomOwner(place), turnsPerHour: turns_per_hour, usdPerDay: usd_per_day } }
}
