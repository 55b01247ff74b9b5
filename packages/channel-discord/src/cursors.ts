/** How far each conversation was taken in, kept over restarts: what came later is asked for when a connection was lost. */

import { type Members, members } from '@sluice/kit/foreign-json'
import type { KeyValue } from '@sluice/sdk'
import { compareSnowflakes, isSnowflake, snowflakeBefore } from './snowflake.ts'

export interface Cursor {
  /** The last message that is durable here, or one before everything that is to come. */
  readonly after: string
  /** The server it is on; empty: a direct conversation; absent: not known. */
  readonly guild?: string
  /** A thread the bot opened. */
  readonly isOurs?: true
}

export interface Cursors {
  /** Adds what was kept by an earlier run. */
  load(): Promise<void>
  get(channel: string): Cursor | undefined
  channels(): string[]
  /** From now on messages of this conversation are owed; keeps a cursor that is there, and learns what it does not know. */
  follow(channel: string, cursor: Cursor): void
  /** A message was seen that is not taken in yet. */
  saw(channel: string, message: { readonly id: string; readonly guild: string }): void
  /** Everything up to this message is durable; never goes back. */
  advance(channel: string, id: string): void
  forget(channel: string): void
  /** Writes what changed. */
  flush(): Promise<void>
}

/** Conversations, threads among them; those longest silent are forgotten first. */
export const CURSORS_MAX = 500
const KEY = 'cursors'

/** `pinned`: a conversation that is not forgotten. */
export function createCursors(keyValue: KeyValue, pinned?: string): Cursors {
  const cursors = new Map<string, Cursor>()
  let isDirty = false

  const put = (channel: string, cursor: Cursor): void => {
    cursors.set(channel, cursor)
    isDirty = true
    if (cursors.size > CURSORS_MAX) cursors.delete(oldest() ?? '')
  }
  const oldest = (): string | undefined => {
    let found: { channel: string; after: string } | undefined
    for (const [channel, { after }] of cursors) {
      if (channel !== pinned && (!found || compareSnowflakes(after, found.after) < 0)) found = { channel, after }
    }
    return found?.channel
  }
  const follow: Cursors['follow'] = (channel, cursor) => {
    const known = cursors.get(channel)
    const learnt = { ...cursor, ...known }
    if (!known || learnt.guild !== known.guild || learnt.isOurs !== known.isOurs) put(channel, learnt)
  }

  return {
    async load() {
      const kept = members(members(await keyValue.get(KEY)))
      for (const [channel, cursor] of Object.entries(kept)) {
        const read = readCursor(members(cursor))
        if (isSnowflake(channel) && read && !cursors.has(channel)) put(channel, read)
      }
    },
    get: (channel) => cursors.get(channel),
    channels: () => [...cursors.keys()],
    follow,
    saw: (channel, { id, guild }) => follow(channel, { after: snowflakeBefore(id), guild }),
    advance(channel, id) {
      const known = cursors.get(channel)
      if (known && compareSnowflakes(id, known.after) > 0) put(channel, { ...known, after: id })
    },
    forget(channel) {
      if (cursors.delete(channel)) isDirty = true
    },
    async flush() {
      if (!isDirty) return
      isDirty = false
      await keyValue.set(KEY, Object.fromEntries(cursors)).catch((error: unknown) => {
        isDirty = true
        throw error
      })
    },
  }
}

function readCursor({ after, guild, isOurs }: Members): Cursor | undefined {
  if (!isSnowflake(after)) return undefined
  return { after, ...(typeof guild === 'string' && { guild }), ...(isOurs === true && { isOurs: true }) }
}
