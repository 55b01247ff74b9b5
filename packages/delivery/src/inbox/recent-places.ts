/**
 * The sessions and accounts of recent messages. Most senders write again, and their next message gets the same texts: escaping and joining
 * them each time took 2 % of the processor time of an accepted message, and every message that waits kept texts of its own.
 */
import { BoundedMap } from '@sluice/kit'
import type { Inbound } from '@sluice/sdk'
import { accountKey } from '../delivery-queue.ts'
import { sessionOf } from './sessions.ts'

const PLACES_MAX = 2000
/** A longer session is not kept, so that strangers cannot fill the memory. */
const CHARS_MAX = 512

/** Where a message belongs. */
export interface MessagePlace {
  readonly session: string
  /** The key of its account. */
  readonly account: string
}

interface KnownPlace extends MessagePlace {
  readonly agent: string
  readonly channel: string
  /** The account, without the channel. */
  readonly own: string
  readonly conversation: string
  readonly thread: string | undefined
}

type Placed = Pick<Inbound, 'account' | 'sender' | 'to'>

export class RecentPlaces {
  /** The last place of each sender. */
  readonly #places = new BoundedMap<string, KnownPlace>(PLACES_MAX)

  get size(): number {
    return this.#places.size
  }

  of(agent: string, channel: string, message: Placed): MessagePlace {
    const known = this.#places.get(message.sender)
    if (known && known.agent === agent && known.channel === channel && isAt(known, message)) return known
    const {
      account: own,
      sender,
      to: { to: conversation, thread },
    } = message
    const session = sessionOf(agent, channel, message)
    const place = { session, account: accountKey({ channel, account: own }), agent, channel, own, conversation, thread }
    if (session.length <= CHARS_MAX) this.#places.set(sender, place)
    return place
  }
}

const isAt = ({ own, conversation, thread }: KnownPlace, { account, to }: Placed): boolean =>
  own === account && conversation === to.to && thread === to.thread
