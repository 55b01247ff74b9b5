/** The agent's memories, each with its owner, and a full-text index over their keys and contents. */
import { type MemoryEntry, type MemoryStore, SHARED_MEMORIES, UNOWNED_MEMORIES } from '@sluice/sdk'
import type { Database } from '../connection/database.ts'
import type { Writer } from '../connection/group-commit.ts'

/** A query uses at most this many words. */
const QUERY_WORDS_MAX = 32

const COLUMNS = 'memories.owner AS owner, memories.key AS key, memories.content AS content, category, updated_at AS updatedAtMs'
const PUT = `
  INSERT INTO memories (owner, key, content, category, updated_at) VALUES (?, ?, ?, ?, ?) ON CONFLICT (owner, key) DO UPDATE SET
    content = excluded.content, category = excluded.category, updated_at = excluded.updated_at`
/** The condition that a client (parameter 1) may read a memory; its own memory hides a shared one with the same key. */
const READABLE = `(memories.owner = ?1 OR memories.owner IN ('${SHARED_MEMORIES}', '${UNOWNED_MEMORIES}')
  AND NOT EXISTS (SELECT 1 FROM memories AS own WHERE own.owner = ?1 AND own.key = memories.key))`
/** The newest memories of one owner that client 1 may read, from the index of that owner. */
const newestOf = (owner: string, condition: string): string => `
  SELECT * FROM (
    SELECT ${COLUMNS}, number FROM memories WHERE owner = ${owner}${condition} ORDER BY updated_at DESC, number DESC LIMIT ?2)`
const OTHERS = [SHARED_MEMORIES, UNOWNED_MEMORIES].map((owner) =>
  newestOf(
    `'${owner}'`,
    ` AND ?1 <> '${owner}' AND NOT EXISTS (SELECT 1 FROM memories AS own WHERE own.owner = ?1 AND own.key = memories.key)`,
  ),
)
const NEWEST = `
  SELECT owner, key, content, category, updatedAtMs FROM (${[newestOf('?1', ''), ...OTHERS].join(' UNION ALL ')})
  ORDER BY updatedAtMs DESC, number DESC LIMIT ?2`
const SEARCH = `
  SELECT ${COLUMNS} FROM memory_words JOIN memories ON number = memory_words.rowid
  WHERE memory_words MATCH ?3 AND ${READABLE} ORDER BY rank, updated_at DESC LIMIT ?2`
const GET = `SELECT ${COLUMNS} FROM memories WHERE owner = ? AND key = ?`
const DELETE = 'DELETE FROM memories WHERE owner = ? AND key = ?'
const LIST = `SELECT ${COLUMNS} FROM memories WHERE (owner, key) > (?, ?) ORDER BY owner, key LIMIT ?`
const LIST_ALL = `SELECT ${COLUMNS} FROM memories ORDER BY owner, key LIMIT ?`
const LIST_OWNED = `SELECT ${COLUMNS} FROM memories WHERE owner = ? AND key > ? ORDER BY key LIMIT ?`
const ASSIGN = 'UPDATE OR IGNORE memories SET owner = ? WHERE owner = ?'
const ASSIGN_ONE = 'UPDATE OR IGNORE memories SET owner = ? WHERE owner = ? AND key = ?'
const OWNERS = 'SELECT owner, count FROM memory_counts WHERE owner > ? ORDER BY owner LIMIT ?'
const OWNERS_FIRST = "SELECT owner, count FROM memory_counts WHERE owner >= '' ORDER BY owner LIMIT ?"
const COUNT = 'SELECT count FROM memory_counts WHERE owner = ?'

interface OwnerColumns {
  readonly owner: string
  readonly count: number
}

/** A search finds entries with any of the words, ignores case and accents, and ranks by BM25. */
export const createMemory = (db: Database, writer: Writer): MemoryStore => ({
  async put({ owner, key, content, category, atMs }) {
    await writer.write(() => db.run(PUT, owner, key, content, category, atMs))
  },
  async search(reader, query, limit) {
    const match = toMatch(query)
    return entries(await (match === '' ? db.page(NEWEST, reader, limit) : db.page(SEARCH, reader, limit, match)))
  },
  async get(owner, key) {
    const row = db.read(() => db.get<MemoryEntry>(GET, owner, key))
    return row && { ...row }
  },
  delete: (owner, key) => writer.write(() => db.run(DELETE, owner, key) > 0),
  async list({ limit, owner, after }) {
    if (owner !== undefined) return entries(await db.page(LIST_OWNED, owner, after?.key ?? '', limit))
    return entries(await (after ? db.page(LIST, after.owner, after.key, limit) : db.page(LIST_ALL, limit)))
  },
  assign: ({ from, to, key }) => writer.write(() => (key === undefined ? db.run(ASSIGN, to, from) : db.run(ASSIGN_ONE, to, from, key))),
  async owners({ limit, after }) {
    const rows = await (after === undefined ? db.page<OwnerColumns>(OWNERS_FIRST, limit) : db.page<OwnerColumns>(OWNERS, after, limit))
    return rows.map((row) => ({ ...row }))
  },
  count: async (owner) => db.read(() => db.get<{ count: number }>(COUNT, owner))?.count ?? 0,
})

const entries = (rows: readonly unknown[]): MemoryEntry[] => rows.map((row) => ({ ...(row as MemoryEntry) }))

/** Quotes each word, so that none is an operator of the query language. A NUL character would end the query. */
const toMatch = (query: string): string =>
  [...new Set(query.split(/[\s\0]+/))]
    .filter((word) => word !== '')
    .slice(0, QUERY_WORDS_MAX)
    .map((word) => `"${word.replaceAll('"', '""')}"`)
    .join(' OR ')
