/** Albums in groups: the caption of one member addresses the whole album, and each member is an update of its own. */
import { BoundedMap } from '@sluice/kit'
import { type Members, members, text } from '@sluice/kit/foreign-json'
import type { Addressed } from '@sluice/sdk'
import { addressedText, type Bot } from './mention.ts'

const ALBUMS_MAX = 500

/** Returns the id of the album of a message, which is unique among all chats; empty for a message of none. */
export const albumOf = ({ chat, media_group_id: album }: Members): string =>
  text(album) === '' ? '' : `${String(members(chat).id)}:${text(album)}`

export class Albums {
  readonly #bot: Bot
  readonly #addressed = new BoundedMap<string, Addressed>(ALBUMS_MAX)
  /** The album for whose further members the last batch waits, and how many there were. */
  #awaited = { album: '', count: 0 }

  constructor(bot: Bot) {
    this.#bot = bot
  }

  /** Returns how a member addressed the album; undefined if no arrived member does. */
  addressed(album: string): Addressed | undefined {
    return this.#addressed.get(album)
  }

  /**
   * Learns which albums of a batch are addressed to the bot. Returns how many updates can be taken: updates at the end wait if they are
   * members of an album that may still turn out to be addressed, until a further batch brings no further member.
   */
  learn(batch: readonly unknown[]): number {
    const albums = batch.map((update) => this.#learnOne(members(members(update).message)))
    const last = albums.at(-1) ?? ''
    const first = albums.findLastIndex((album) => album !== last) + 1
    const count = batch.length - first
    const isAwaited = last !== '' && !this.#addressed.has(last) && !(this.#awaited.album === last && this.#awaited.count >= count)
    this.#awaited = isAwaited ? { album: last, count } : { album: '', count: 0 }
    return isAwaited ? first : batch.length
  }

  /** Returns the id of the album in a group. */
  #learnOne(message: Members): string {
    const album = ['group', 'supergroup'].includes(text(members(message.chat).type)) ? albumOf(message) : ''
    const { addressed } = addressedText(message, this.#bot)
    if (album !== '' && addressed !== 'overheard') this.#addressed.set(album, addressed)
    return album
  }
}
