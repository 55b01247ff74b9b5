/** What was said in a conversation since a message, oldest first. */

import { list, type Members, members } from '@sluice/kit/foreign-json'
import type { Inbound, Logger } from '@sluice/sdk'
import { callDiscord, type DiscordApi } from './api.ts'
import type { Cursor, Cursors } from './cursors.ts'
import { type Listener, parseMessage, placeOf } from './parse-message.ts'
import { compareSnowflakes, isSnowflake, snowflakeAt, snowflakeMs } from './snowflake.ts'

export interface HistoryDeps {
  readonly api: DiscordApi
  readonly cursors: Pick<Cursors, 'get' | 'follow' | 'advance'>
  readonly listener: Listener
  readonly log: Logger
  nowMs(): number
}

/** Older questions are not answered any more. */
export const STALE_MS = 3_600_000
/** Of one conversation; what is beyond it is left out. */
export const MISSED_MAX = 1000
const PAGE = 100

/** One message that may have been missed; without `inbound` it is none for us. */
export interface Missed {
  readonly id: string
  readonly inbound: Inbound | undefined
}

/**
 * What came after the cursor of the conversation, which the caller moves; nothing for one that is not followed. Throws as
 * `callDiscord` does, `invalid_request` and `forbidden` for a conversation that is gone.
 */
export async function* missedIn(channel: string, deps: HistoryDeps, signal: AbortSignal): AsyncGenerator<Missed> {
  const { api, cursors, listener, log } = deps
  const cursor = cursors.get(channel)
  if (!cursor) return
  const staleBefore = snowflakeAt(deps.nowMs() - STALE_MS)
  let after = compareSnowflakes(cursor.after, staleBefore) < 0 ? staleBefore : cursor.after
  const guild = await guildOf(channel, cursor, deps, signal)
  if (!placeOf(listener, { channel_id: channel, guild_id: guild })) return
  for (let count = 0; count < MISSED_MAX; ) {
    const path = `/channels/${channel}/messages?after=${after}&limit=${PAGE}`
    const { json } = await callDiscord(api, { method: 'GET', path, signal })
    const page = oldestFirst(list(json).map(members))
    for (const message of page) {
      const id = String(message.id)
      after = id
      yield { id, inbound: parseMessage(listener, message, { channel, guild }) }
    }
    count += page.length
    if (page.length < PAGE) return
  }
  log.warn('too much was said while nobody listened: the rest is left out', {
    channel: 'discord',
    conversation: channel,
    since: new Date(snowflakeMs(after)).toISOString(),
    max: MISSED_MAX,
  })
}

/** The history does not say which server it is of. */
async function guildOf(channel: string, cursor: Cursor, { api, cursors }: HistoryDeps, signal: AbortSignal): Promise<string> {
  if (cursor.guild !== undefined) return cursor.guild
  const { json } = await callDiscord(api, { method: 'GET', path: `/channels/${channel}`, signal })
  const { guild_id } = members(json)
  const guild = isSnowflake(guild_id) ? guild_id : ''
  cursors.follow(channel, { ...cursor, guild })
  return guild
}

const oldestFirst = (page: readonly Members[]): Members[] =>
  page.filter(({ id }) => isSnowflake(id)).sort((a, b) => compareSnowflakes(String(a.id), String(b.id)))
