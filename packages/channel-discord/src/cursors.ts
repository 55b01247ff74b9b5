/** How far the channel has stored each conversation. Missed messages are fetched from there on. */
import { Cursors, type Position } from '@sluice/kit'
import { members } from '@sluice/kit/foreign-json'
import type { KeyValue } from '@sluice/sdk'
import { isSnowflake } from './snowflake.ts'

export interface Cursor extends Position {
  /** The server of the conversation. Empty for a direct conversation, absent while it is unknown. */
  readonly guild?: string
  /** Whether the conversation is a thread that the bot opened. */
  readonly isOurs?: true
}

export type DiscordCursors = Cursors<Cursor>

/** The largest number of conversations, threads included. The one that has been silent for longest is forgotten first. */
export const CURSORS_MAX = 500

/** The conversation `pinned` is never forgotten to make room for others. */
export const createCursors = (keyValue: KeyValue, pinned?: string): DiscordCursors =>
  new Cursors<Cursor>({
    keyValue,
    key: 'cursors',
    groups: [{ max: CURSORS_MAX, has: () => true }],
    isPinned: (channel) => channel === pinned,
    read(channel, stored) {
      const { after, guild, isOurs } = members(stored)
      if (!isSnowflake(channel) || !isSnowflake(after)) return undefined
      return { after, ...(typeof guild === 'string' && { guild }), ...(isOurs === true && { isOurs: true }) }
    },
  })
