/** The agent's memories, each with its owner, and a full-text index over their keys and contents. */
import { type MemoryEntry, type MemoryStore, SHARED_MEMORIES, UNOWNED_MEMORIES } from '@sluice/sdk'
import { indexedWords, searchedWords, similarWords } from '../tables/memory-words.ts'
import { type ColdDatabase, type MemoryColumns, statement } from './cold-database.ts'

export const MEMORY_COLUMNS =
  'memories.owner AS owner, memories.key AS key, memories.content AS content, category, untrusted, updated_at AS "updatedAtMs"'
/** The condition that a client's own memory (parameter 1) does not hide one of all clients with the same key. */
const SHOWN = 'NOT EXISTS (SELECT 1 FROM memories AS own WHERE own.owner = $1 AND own.key = memories.key)'
/** The condition that a client (parameter 1) may read a memory. */
export const READABLE = `(memories.owner = $1 OR memories.owner IN ('${SHARED_MEMORIES}', '${UNOWNED_MEMORIES}') AND ${SHOWN})`
/** The newest memories of one owner that client 1 may read, from the index of that owner. */
const newestOf = (owner: string, condition: string): string => `
  SELECT * FROM (
    SELECT ${MEMORY_COLUMNS}, number FROM memories WHERE owner = ${owner}${condition} ORDER BY updated_at DESC, number DESC LIMIT $2
  ) AS newest`
const OTHERS = [SHARED_MEMORIES, UNOWNED_MEMORIES].map((owner) => newestOf(`'${owner}'`, ` AND $1 <> '${owner}' AND ${SHOWN}`))
const NEWEST = `
  SELECT owner, key, content, category, untrusted, "updatedAtMs" FROM (${[newestOf('$1', ''), ...OTHERS].join(' UNION ALL ')}) AS found
  ORDER BY "updatedAtMs" DESC, number DESC LIMIT $2`
const GET = `SELECT ${MEMORY_COLUMNS} FROM memories WHERE owner = $1 AND key = $2`
const DELETE = 'DELETE FROM memories WHERE owner = $1 AND key = $2 RETURNING number'
const LIST = `SELECT ${MEMORY_COLUMNS} FROM memories WHERE (owner, key) > ($1, $2) ORDER BY owner, key LIMIT $3`
const LIST_ALL = `SELECT ${MEMORY_COLUMNS} FROM memories ORDER BY owner, key LIMIT $1`
const LIST_OWNED = `SELECT ${MEMORY_COLUMNS} FROM memories WHERE owner = $1 AND key > $2 ORDER BY key LIMIT $3`
const ASSIGN = `
  UPDATE memories SET owner = $1 WHERE owner = $2 AND key = coalesce($3, key)
    AND NOT EXISTS (SELECT 1 FROM memories AS own WHERE own.owner = $1 AND own.key = memories.key) RETURNING number`

/** A search finds entries with any of the words, ignores case and accents, and lists short entries with many of the words first. */
export function createMemory(db: ColdDatabase): MemoryStore {
  const { words, counts, search, match, similar } = db.dialect.memory
  const PUT = `
    INSERT INTO memories (owner, key, content, category, untrusted, updated_at, words) VALUES ($1, $2, $3, $4, $5, $6, ${words})
    ON CONFLICT (owner, key) DO UPDATE SET content = excluded.content, category = excluded.category, untrusted = excluded.untrusted,
      updated_at = excluded.updated_at, words = excluded.words`
  const ownersFrom = (condition: string): string => `SELECT owner, count FROM ${counts} WHERE owner ${condition} $1 ORDER BY owner LIMIT $2`
  const [OWNERS, OWNERS_AFTER] = [ownersFrom('>='), ownersFrom('>')]
  const COUNT = `SELECT count FROM ${counts} WHERE owner = $1`

  const find = async (reader: string, asked: readonly string[], limit: number): Promise<readonly MemoryColumns[]> =>
    asked.length === 0 ? [] : db.all(search, reader, limit, match(reader, asked))

  return {
    async put({ owner, key, content, category, untrusted, atMs }) {
      await db.write(statement(PUT, owner, key, content, category, untrusted, atMs, indexedWords(key, content)))
    },
    search: async (reader, query, limit) =>
      entries(await (query.trim() === '' ? db.all<MemoryColumns>(NEWEST, reader, limit) : find(reader, searchedWords(query), limit))),
    async similar(reader, text, limit) {
      if (similar) return entries(await similar(db, reader, text, limit))
      const { whole, parts } = similarWords(text)
      return entries(await find(reader, [...whole, ...parts], limit))
    },
    async get(owner, key) {
      const row = await db.get<MemoryColumns>(GET, owner, key)
      return row && entries([row])[0]
    },
    delete: async (owner, key) => (await db.write(statement(DELETE, owner, key))).length > 0,
    async list({ limit, owner, after }) {
      if (owner !== undefined) return entries(await db.all<MemoryColumns>(LIST_OWNED, owner, after?.key ?? '', limit))
      return entries(await (after ? db.all<MemoryColumns>(LIST, after.owner, after.key, limit) : db.all<MemoryColumns>(LIST_ALL, limit)))
    },
    assign: async ({ from, to, key }) => (await db.write(statement(ASSIGN, to, from, key ?? null))).length,
    owners: ({ limit, after }) => db.all(after === undefined ? OWNERS : OWNERS_AFTER, after ?? '', limit),
    count: async (owner) => (await db.get<{ count: number }>(COUNT, owner))?.count ?? 0,
  }
}

const entries = (rows: readonly MemoryColumns[]): MemoryEntry[] => rows.map((row) => ({ ...row, untrusted: Boolean(row.untrusted) }))
