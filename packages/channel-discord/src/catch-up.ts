/** Fetches the messages that were written in a conversation while the bot was disconnected. */
import { list, type Members, members } from '@sluice/kit/foreign-json'
import type { Gap, Host, Inbound } from '@sluice/sdk'
import { callDiscord, type DiscordApi } from './api.ts'
import type { Cursor, DiscordCursors } from './cursors.ts'
import type { Guilds } from './guilds.ts'
import { type Conversation, conversationOf, type ListenSettings, parseEdit, parseMessage } from './parse.ts'
import { compareSnowflakes, isSnowflake, snowflakeAfter, snowflakeAt, snowflakeMs } from './snowflake.ts'

/** One message of a conversation. */
export interface Message {
  readonly id: string
  /** Undefined for a message that is not for the bot. Its id still moves the cursor. */
  readonly inbound: Inbound | undefined
  /** The newest edit of a message that may be stored already. A message that is stored for the first time has its words, so that nothing changes. */
  readonly edit?: Inbound | undefined
}

/** Messages older than this are not answered any more. */
export const STALE_MS = 3_600_000
/** The most messages fetched from one conversation; newer ones are skipped. */
export const MISSED_MAX = 1000
const PAGE = 100
/** Before the cursor, edits are looked for in the last page of messages of the last day. */
const EDITABLE_MS = 24 * 3_600_000

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
   * Yields the edits of messages up to the conversation's cursor, then the messages after it, oldest first, and nothing for a
   * conversation without a cursor. The caller moves the cursor. Throws as `callDiscord` does: `invalid_request` or `forbidden` when the bot can no longer read
   * the conversation.
   */
  async *of(channel: string, signal: AbortSignal): AsyncGenerator<Message> {
    // Without the roles of the server, a mention of a role of the bot would be missed.
    await this.#guilds.settled(signal)
    const cursor = this.#cursors.get(channel)
    if (!cursor) return
    const guild = await this.#guildOf(channel, cursor, signal)
    const conversation = conversationOf(this.#settings, { channel_id: channel, guild_id: guild })
    if (!conversation) return
    yield* this.#edited(conversation, cursor, signal)
    let after: string | undefined = await this.#startOf(channel, cursor, signal)
    if (after === undefined) return
    for (let count = 0; count < MISSED_MAX; ) {
      const path = `/channels/${channel}/messages?after=${after}&limit=${PAGE}`
      const { json } = await callDiscord(this.#api, { method: 'GET', path, signal })
      const page = oldestFirst(list(json).map(members))
      for (const message of page) {
        const id = String(message.id)
        after = id
        const inbound = parseMessage(this.#settings, this.#guilds, message, conversation)
        yield { id, inbound, edit: parseEdit(this.#settings, this.#guilds, message, conversation) }
      }
      count += page.length
      if (page.length < PAGE) return
    }
    this.#onGap({
      sinceMs: snowflakeMs(after),
      why: `more than ${MISSED_MAX} messages were missed in conversation ${channel}; the newest are skipped`,
    })
  }

  /** Yields the edited ones of the last messages up to the cursor. The inbox knows the edits that it has stored. */
  async *#edited(conversation: Conversation, { after }: Cursor, signal: AbortSignal): AsyncGenerator<Message> {
    const { channel } = conversation
    const editableFromMs = this.#host.clock.nowMs() - EDITABLE_MS
    if (snowflakeMs(after) < editableFromMs) return
    const path = `/channels/${channel}/messages?before=${snowflakeAfter(after)}&limit=${PAGE}`
    const { json } = await callDiscord(this.#api, { method: 'GET', path, signal })
    for (const message of oldestFirst(list(json).map(members))) {
      const id = String(message.id)
      const edit = snowflakeMs(id) < editableFromMs ? undefined : parseEdit(this.#settings, this.#guilds, message, conversation)
      if (edit) yield { id, inbound: undefined, edit }
    }
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
