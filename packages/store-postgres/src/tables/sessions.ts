/** How sessions are read in PostgreSQL. */
import { SESSION_COLUMNS, type SessionReads, statement } from '@sluice/store/shared'
import type { Database } from '../connection/database.ts'
import type { Histories } from './history-cache.ts'

const LIST = `
  SELECT ${SESSION_COLUMNS} FROM sessions
  WHERE ($1 = '' OR right(id, length($1)) = $1) AND (last_active_at, id) < ($2, $3) AND starts_with(key, $5)
  ORDER BY last_active_at DESC, id DESC LIMIT $4`

export const sessionReads = (db: Database, histories: Histories): SessionReads => ({
  recent: (id, limit) => histories.recent(db, id, limit),
  // Each read asks the database whether the summary is the same.
  forget: () => {},
  page: ({ limit, before, prefix = '', suffix = '' }) =>
    statement(LIST, suffix, before?.lastActiveAtMs ?? Number.POSITIVE_INFINITY, before?.id ?? '', limit, prefix),
  async erase(id, about) {
    const { eraseFromDatabase } = await import('./conversation-eraser.ts')
    return eraseFromDatabase(db, id, about)
  },
})
