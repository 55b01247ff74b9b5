/** The agent's memories, each with its owner, and a full-text index over their keys and contents. */
import { type MemoryEntry, type MemoryStore, SHARED_MEMORIES, UNOWNED_MEMORIES } from '@sluice/sdk'
import { indexedWords, searchedWords, similarWords } from '@sluice/store/shared'
import { sql } from '../connection/connection.ts'
import type { Database } from '../connection/database.ts'

const COLUMNS = 'memories.owner, memories.key, memories.content, category, untrusted, updated_at AS "updatedAtMs"'
const PUT = `
  INSERT INTO memories (owner, key, content, category, untrusted, updated_at, words)
  VALUES ($1, $2, $3, $4, $5, $6, to_tsvector('simple', $7))
  ON CONFLICT (owner, key) DO UPDATE SET content = excluded.content, category = excluded.category, untrusted = excluded.untrusted,
    updated_at = excluded.updated_at, words = excluded.words`
/** The condition that a client (parameter 1) may read a memory; its own memory hides a shared one with the same key. */
const READABLE = `(memories.owner = $1 OR memories.owner IN ('${SHARED_MEMORIES}', '${UNOWNED_MEMORIES}')
  AND NOT EXISTS (SELECT 1 FROM memories AS own WHERE own.owner = $1 AND own.key = memories.key))`
const NEWEST = `SELECT ${COLUMNS} FROM memories WHERE ${READABLE} ORDER BY updated_at DESC, number DESC LIMIT $2`
// Divides by the logarithm of the length of an entry, as BM25 prefers short ones, too.
const SEARCH = `
  SELECT ${COLUMNS} FROM memories WHERE words @@ $3::tsquery AND ${READABLE}
  ORDER BY ts_rank(words, $3::tsquery, 1) DESC, updated_at DESC LIMIT $2`
const QUERY = `SELECT string_agg(plainto_tsquery('simple', word)::text, ' | ') AS query FROM unnest($1::text[]) AS word
  WHERE numnode(plainto_tsquery('simple', word)) > 0`
const GET = `SELECT ${COLUMNS} FROM memories WHERE owner = $1 AND key = $2`
const DELETE = 'DELETE FROM memories WHERE owner = $1 AND key = $2 RETURNING number'
const LIST = `SELECT ${COLUMNS} FROM memories WHERE (owner, key) > ($1, $2) ORDER BY owner, key LIMIT $3`
const LIST_ALL = `SELECT ${COLUMNS} FROM memories ORDER BY owner, key LIMIT $1`
const LIST_OWNED = `SELECT ${COLUMNS} FROM memories WHERE owner = $1 AND key > $2 ORDER BY key LIMIT $3`
const ASSIGN = `
  UPDATE memories SET owner = $1 WHERE owner = $2 AND ($3::text IS NULL OR key = $3)
    AND NOT EXISTS (SELECT 1 FROM memories AS own WHERE own.owner = $1 AND own.key = memories.key) RETURNING number`
const OWNERS = `
  SELECT owner, count(*) AS count FROM memories WHERE $2::text IS NULL OR owner > $2 GROUP BY owner ORDER BY owner LIMIT $1`
const COUNT = 'SELECT count(*) AS count FROM memories WHERE owner = $1'

/** A search finds entries with any of the words, ignores case and accents, and ranks by `ts_rank`. */
export const createMemory = (db: Database): MemoryStore => ({
  async put({ owner, key, content, category, untrusted, atMs }) {
    await db.writer.write(sql(PUT, owner, key, content, category, untrusted, atMs, indexedWords(key, content)))
  },
  async search(reader, query, limit) {
    if (query.trim() === '') return db.all<MemoryEntry>(NEWEST, reader, limit)
    return find(db, reader, searchedWords(query), limit)
  },
  similar: (reader, text, limit) => find(db, reader, similarWords(text), limit),
  get: (owner, key) => db.get<MemoryEntry>(GET, owner, key),
  delete: async (owner, key) => (await db.writer.write(sql(DELETE, owner, key))).length > 0,
  async list({ limit, owner, after }) {
    if (owner !== undefined) return db.all<MemoryEntry>(LIST_OWNED, owner, after?.key ?? '', limit)
    return after ? db.all<MemoryEntry>(LIST, after.owner, after.key, limit) : db.all<MemoryEntry>(LIST_ALL, limit)
  },
  assign: async ({ from, to, key }) => (await db.writer.write(sql(ASSIGN, to, from, key ?? null))).length,
  owners: ({ limit, after }) => db.all(OWNERS, limit, after ?? null),
  count: async (owner) => (await db.get<{ count: number }>(COUNT, owner))?.count ?? 0,
})

async function find(db: Database, reader: string, words: readonly string[], limit: number): Promise<MemoryEntry[]> {
  const found = words.length > 0 ? await db.get<{ query: string | null }>(QUERY, words) : undefined
  return found?.query ? db.all<MemoryEntry>(SEARCH, reader, limit, found.query) : []
}
