/** Fetches the messages that were written in a conversation while the bot was disconnected. */
import { list, type Members, members } from '@sluice/kit/foreign-json'
import type { Gap, Host, Inbound } from '@sluice/sdk'
import { callDiscord, type DiscordApi } from './api.ts'
import type { Cursor, DiscordCursors } from './cursors.ts'
import type { Guilds } from './guilds.ts'
import { conversationOf, type ListenSettings, parseMessage } from './parse.ts'
import { compareSnowflakes, isSnowflake, snowflakeAt, snowflakeMs } from './snowflake.ts'

/** One message of a conversation. */
export interface Message {
  readonly id: string
  /** Undefined for a message that is not for the bot. Its id still moves the cursor. */
  readonly inbound: Inbound | undefined
}

/** Messages older than this are not answered any more. */
export const STALE_MS = 3_600_000
/** The most messages fetched from one conversation; newer ones are skipped. */
export const MISSED_MAX = 1000
const PAGE = 100

export class MissedMessages {
  readonly #host: Host
  readonly #api: DiscordApi
  readonly #cursors: DiscordCursors
  readonly #settings: ListenSettings
  readonly #guilds: Guilds
  readonly #onGap: (gap: Gap) => void

  /** `onGap` is called when messages are skipped. */
  constructor(host: Host, api: DiscordApi, cursors: DiscordCursors, settings: ListenSettings, guilds: Guilds, onGap: (gap: Gap) => void) {
    this.#onGap = onGap
    this.#host = host
    this.#api = api
    this.#cursors = cursors
    this.#settings = settings
    this.#guilds = guilds
  }

  /**
   * Yields the messages after the conversation's cursor, oldest first, and nothing for a conversation without a cursor. The
   * caller moves the cursor. Throws as `callDiscord` does: `invalid_request` or `forbidden` when the bot can no longer read
   * the conversation.
   */
  async *of(channel: string, signal: AbortSignal): AsyncGenerator<Message> {
    // Without the roles of the server, a mention of a role of the bot would be missed.
    await this.#guilds.settled(signal)
    const cursor = this.#cursors.get(channel)
    if (!cursor) return
    let after: string | undefined = await this.#startOf(channel, cursor, signal)
    if (after === undefined) return
    const guild = await this.#guildOf(channel, cursor, signal)
    const conversation = conversationOf(this.#settings, { channel_id: channel, guild_id: guild })
    if (!conversation) return
    for (let count = 0; count < MISSED_MAX; ) {
      const path = `/channels/${channel}/messages?after=${after}&limit=${PAGE}`
      const { json } = await callDiscord(this.#api, { method: 'GET', path, signal })
      const page = oldestFirst(list(json).map(members))
      for (const message of page) {
        const id = String(message.id)
        after = id
        yield { id, inbound: parseMessage(this.#settings, this.#guilds, message, conversation) }
      }
      count += page.length
      if (page.length < PAGE) return
    }
    this.#onGap({
      sinceMs: snowflakeMs(after),
      why: `more than ${MISSED_MAX} messages were missed in conversation ${channel}; the newest are skipped`,
    })
  }

  /** Returns the id to read after; undefined if nothing was missed. Reports messages that are too old to be answered. */
  async #startOf(channel: string, { after }: Cursor, signal: AbortSignal): Promise<string | undefined> {
    const staleBefore = snowflakeAt(this.#host.clock.nowMs() - STALE_MS)
    if (compareSnowflakes(after, staleBefore) >= 0) return after
    const path = `/channels/${channel}/messages?after=${after}&limit=1`
    const { json } = await callDiscord(this.#api, { method: 'GET', path, signal })
    const [first] = oldestFirst(list(json).map(members))
    if (!first) return undefined
    if (compareSnowflakes(String(first.id), staleBefore) < 0) {
      this.#onGap({ sinceMs: snowflakeMs(after), why: `messages in conversation ${channel} are more than an hour old and are skipped` })
    }
    return staleBefore
  }

  /** Asks for the server once, because the messages of the history do not name it. */
  async #guildOf(channel: string, cursor: Cursor, signal: AbortSignal): Promise<string> {
    if (cursor.guild !== undefined) return cursor.guild
    const { json } = await callDiscord(this.#api, { method: 'GET', path: `/channels/${channel}`, signal })
    const { guild_id } = members(json)
    const guild = isSnowflake(guild_id) ? guild_id : ''
    this.#cursors.follow(channel, { ...cursor, guild })
    return guild
  }
}

const oldestFirst = (page: readonly Members[]): Members[] =>
  page.filter(({ id }) => isSnowflake(id)).sort((a, b) => compareSnowflakes(String(a.id), String(b.id)))
