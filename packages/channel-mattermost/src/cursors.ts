/**
 * How far the channel has stored the posts of all conversations: a time of the server, up to which each post is durable. Posts can share
 * a millisecond, and one with an earlier time can appear later, so a catch-up begins a little before the position.
 */
import { Cursors } from '@sluice/kit'
import { members } from '@sluice/kit/foreign-json'
import type { KeyValue } from '@sluice/sdk'

export type MattermostCursors = Cursors

const SCOPE = 'posts'
/** Posts within this time before the position are read again. The daemon drops the ones that it has. */
export const OVERLAP_MS = 10_000

export const createCursors = (keyValue: KeyValue): MattermostCursors =>
  new Cursors({
    keyValue,
    key: 'cursors',
    groups: [{ max: 1, has: () => true }],
    read(scope, stored) {
      const { after } = members(stored)
      return scope === SCOPE && typeof after === 'string' && /^\d{1,15}$/.test(after) ? { after } : undefined
    },
  })

/** Returns the time from which a catch-up reads; undefined before the first connection. */
export function readsFromMs(cursors: MattermostCursors): number | undefined {
  const position = cursors.get(SCOPE)
  return position && Math.max(0, Number(position.after) - OVERLAP_MS)
}

/** Sets the position at the first connection, so that only posts after `lastPostAtMs` are read. */
export const startAfter = (cursors: MattermostCursors, lastPostAtMs: number): void =>
  cursors.follow(SCOPE, { after: String(lastPostAtMs + 1 + OVERLAP_MS) })

/** An administrator can give a post any time. One in the future must not hide the posts until then. */
export const advance = (cursors: MattermostCursors, createdAtMs: number, nowMs: number): void =>
  cursors.advance(SCOPE, String(Math.min(createdAtMs, nowMs)))
