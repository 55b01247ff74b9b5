/** What the agent remembers, with a full-text index over keys and contents. */
import type { MemoryEntry, MemoryStore } from '@sluice/sdk'
import type { Database } from './database.ts'
import type { GroupCommit } from './group-commit.ts'

/** Further words of a query are ignored. */
const QUERY_WORDS_MAX = 32

const COLUMNS = 'memories.key AS key, memories.content AS content, category, updated_at AS updatedAtMs'
const PUT = `
  INSERT INTO memories (key, content, category, updated_at) VALUES (?, ?, ?, ?) ON CONFLICT (key) DO UPDATE SET
    content = excluded.content, category = excluded.category, updated_at = excluded.updated_at`
const NEWEST = `SELECT ${COLUMNS} FROM memories ORDER BY updated_at DESC, number DESC LIMIT ?`
const SEARCH = `
  SELECT ${COLUMNS} FROM memory_words JOIN memories ON number = memory_words.rowid
  WHERE memory_words MATCH ? ORDER BY rank, updated_at DESC LIMIT ?`
const GET = `SELECT ${COLUMNS} FROM memories WHERE key = ?`
const DELETE = 'DELETE FROM memories WHERE key = ?'

/** A search finds entries with any of the words, whatever their case and accents, and ranks them by BM25. */
export const createMemory = (db: Database, writer: GroupCommit): MemoryStore => ({
  async put({ key, content, category, atMs }) {
    await writer.write(() => db.run(PUT, key, content, category, atMs))
  },
  async search(query, limit) {
    const match = toMatch(query)
    const rows = db.read(() => (match === '' ? db.all<MemoryEntry>(NEWEST, limit) : db.all<MemoryEntry>(SEARCH, match, limit)))
    return rows.map((row) => ({ ...row }))
  },
  async get(key) {
    const row = db.read(() => db.get<MemoryEntry>(GET, key))
    return row && { ...row }
  },
  delete: (key) => writer.write(() => db.run(DELETE, key) > 0),
})

/** Quoted, no word is an operator of the query language; a NUL would end the query. */
const toMatch = (query: string): string =>
  [...new Set(query.split(/[\s\0]+/))]
    .filter((word) => word !== '')
    .slice(0, QUERY_WORDS_MAX)
    .map((word) => `"${word.replaceAll('"', '""')}"`)
    .join(' OR ')
