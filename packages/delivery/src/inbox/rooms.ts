/** Finds the rules of a room. A direct chat has none, and costs no read. */
import { type Channel, type Inbound, ROOMS, type RoomPlace, type RoomRule, roomKey, roomRuleSchema, type Store } from '@sluice/sdk'
import * as v from 'valibot'

export interface RoomsOptions {
  readonly store: Pick<Store, 'keyValue'>
  /** Returns whether the people of a room share one conversation, unless its rule says otherwise. */
  sharesRooms(channel: string): boolean
}

/** A room with the rule in force. */
export interface Room {
  readonly rule: RoomRule
  /** Whether its people share one conversation. */
  readonly isShared: boolean
}

/** Whether a message comes from a conversation of several people. A channel that cannot tell has direct chats only. */
export const isInRoom = ({ addressed }: Pick<Inbound, 'addressed'>): boolean => addressed !== undefined && addressed !== 'direct'

const placeOf = (channel: string, { account, to }: Pick<Inbound, 'account' | 'to'>): RoomPlace => ({
  channel,
  account,
  conversation: to.to,
})

export class Rooms {
  readonly #options: RoomsOptions

  constructor(options: RoomsOptions) {
    this.#options = options
  }

  /** Resolves to undefined for a message of a direct chat. */
  async of({ name }: Pick<Channel, 'name'>, message: Pick<Inbound, 'account' | 'to' | 'addressed'>): Promise<Room | undefined> {
    return isInRoom(message) ? this.at(placeOf(name, message)) : undefined
  }

  async at(place: RoomPlace): Promise<Room> {
    const stored = v.safeParse(roomRuleSchema, (await this.#options.store.keyValue(ROOMS).get(roomKey(place))) ?? {})
    // A later release may have written rules that this one does not know.
    const rule: RoomRule = stored.success ? stored.output : {}
    return { rule, isShared: rule.session === undefined ? this.#options.sharesRooms(place.channel) : rule.session === 'shared' }
  }
}
