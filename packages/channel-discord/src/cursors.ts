/** How far the channel has stored each conversation, kept across restarts. Missed messages are fetched from there on. */
import { type Members, members } from '@sluice/kit/foreign-json'
import type { KeyValue } from '@sluice/sdk'
import { compareSnowflakes, isSnowflake, snowflakeBefore } from './snowflake.ts'

export interface Cursor {
  /** Every message up to this id is durable or does not need to be fetched. */
  readonly after: string
  /** The server of the conversation. Empty for a direct conversation, absent while it is unknown. */
  readonly guild?: string
  /** Whether the conversation is a thread that the bot opened. */
  readonly isOurs?: true
}

/** The largest number of conversations, threads included. The one that has been silent for longest is forgotten first. */
export const CURSORS_MAX = 500
const KEY = 'cursors'

export class Cursors {
  readonly #keyValue: KeyValue
  readonly #pinned: string | undefined
  readonly #cursors = new Map<string, Cursor>()
  #isDirty = false

  /** The conversation `pinned` is never forgotten to make room for others. */
  constructor(keyValue: KeyValue, pinned?: string) {
    this.#keyValue = keyValue
    this.#pinned = pinned
  }

  /** Adds the cursors that an earlier run stored. Skips malformed entries. */
  async load(): Promise<void> {
    const stored = members(members(await this.#keyValue.get(KEY)))
    for (const [channel, value] of Object.entries(stored)) {
      const cursor = readCursor(members(value))
      if (isSnowflake(channel) && cursor && !this.#cursors.has(channel)) this.#put(channel, cursor)
    }
  }

  get(channel: string): Cursor | undefined {
    return this.#cursors.get(channel)
  }

  channels(): string[] {
    return [...this.#cursors.keys()]
  }

  /** Starts to follow a conversation. An existing cursor keeps its position and only gains members that it did not have. */
  follow(channel: string, cursor: Cursor): void {
    const known = this.#cursors.get(channel)
    const merged = { ...cursor, ...known }
    if (!known || merged.guild !== known.guild || merged.isOurs !== known.isOurs) this.#put(channel, merged)
  }

  /** Follows a conversation from directly before a message that has arrived but is not durable yet. */
  followFrom(channel: string, message: { readonly id: string; readonly guild: string }): void {
    this.follow(channel, { after: snowflakeBefore(message.id), guild: message.guild })
  }

  /** Records that every message up to `id` is durable. A cursor never moves back. */
  advance(channel: string, id: string): void {
    const known = this.#cursors.get(channel)
    if (known && compareSnowflakes(id, known.after) > 0) this.#put(channel, { ...known, after: id })
  }

  forget(channel: string): void {
    if (this.#cursors.delete(channel)) this.#isDirty = true
  }

  /** Stores the cursors if one has changed. After a failed write the next call tries again. */
  async flush(): Promise<void> {
    if (!this.#isDirty) return
    this.#isDirty = false
    await this.#keyValue.set(KEY, Object.fromEntries(this.#cursors)).catch((error: unknown) => {
      this.#isDirty = true
      throw error
    })
  }

  #put(channel: string, cursor: Cursor): void {
    this.#cursors.set(channel, cursor)
    this.#isDirty = true
    if (this.#cursors.size > CURSORS_MAX) this.#cursors.delete(this.#longestSilent() ?? '')
  }

  #longestSilent(): string | undefined {
    let oldest: { channel: string; after: string } | undefined
    for (const [channel, { after }] of this.#cursors) {
      if (channel !== this.#pinned && (!oldest || compareSnowflakes(after, oldest.after) < 0)) oldest = { channel, after }
    }
    return oldest?.channel
  }
}

function readCursor({ after, guild, isOurs }: Members): Cursor | undefined {
  if (!isSnowflake(after)) return undefined
  return { after, ...(typeof guild === 'string' && { guild }), ...(isOurs === true && { isOurs: true }) }
}
