/** The agent's memories, each with its owner, and a full-text index over their keys and contents. */
import { setImmediate } from 'node:timers/promises'
import { type MemoryEntry, type MemoryStore, SHARED_MEMORIES, UNOWNED_MEMORIES } from '@sluice/sdk'
import type { Database } from '../connection/database.ts'
import type { Writer } from '../connection/group-commit.ts'
import { indexedWords, searchedWords, similarWords } from './memory-words.ts'

const COLUMNS = 'memories.owner AS owner, memories.key AS key, memories.content AS content, category, untrusted, updated_at AS updatedAtMs'
const PUT = `
  INSERT INTO memories (owner, key, content, category, untrusted, updated_at, words) VALUES (?, ?, ?, ?, ?, ?, ?)
  ON CONFLICT (owner, key) DO UPDATE SET content = excluded.content, category = excluded.category, untrusted = excluded.untrusted,
    updated_at = excluded.updated_at, words = excluded.words`
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
  SELECT owner, key, content, category, untrusted, updatedAtMs FROM (${[newestOf('?1', ''), ...OTHERS].join(' UNION ALL ')})
  ORDER BY updatedAtMs DESC, number DESC LIMIT ?2`
const SEARCH = `
  SELECT ${COLUMNS} FROM memory_words JOIN memories ON number = memory_words.rowid
  WHERE memory_words MATCH ?3 AND ${READABLE} ORDER BY bm25(memory_words, 0, 1), updated_at DESC LIMIT ?2`
/** The newest memories that have a word count for it, so that a word that all have costs little. */
const WITH_WORD_MAX = 100
const WITH_WORD = 'SELECT rowid AS number FROM memory_words WHERE memory_words MATCH ? ORDER BY rowid DESC LIMIT ?'
const READ = `SELECT ${COLUMNS} FROM memories WHERE number = ?2 AND ${READABLE}`
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
  async put({ owner, key, content, category, untrusted, atMs }) {
    const words = indexedWords(key, content)
    await writer.write(() => db.run(PUT, owner, key, content, category, Number(untrusted), atMs, words))
  },
  async search(reader, query, limit) {
    if (query.trim() === '') return entries(await db.page<EntryColumns>(NEWEST, reader, limit))
    return find(db, reader, searchedWords(query), limit)
  },
  similar: (reader, text, limit) => similar(db, reader, text, limit),
  get: async (owner, key) => entries(db.read(() => db.all<EntryColumns>(GET, owner, key)))[0],
  delete: (owner, key) => writer.write(() => db.run(DELETE, owner, key) > 0),
  async list({ limit, owner, after }) {
    if (owner !== undefined) return entries(await db.page<EntryColumns>(LIST_OWNED, owner, after?.key ?? '', limit))
    return entries(await (after ? db.page<EntryColumns>(LIST, after.owner, after.key, limit) : db.page<EntryColumns>(LIST_ALL, limit)))
  },
  assign: ({ from, to, key }) => writer.write(() => (key === undefined ? db.run(ASSIGN, to, from) : db.run(ASSIGN_ONE, to, from, key))),
  async owners({ limit, after }) {
    const rows = await (after === undefined ? db.page<OwnerColumns>(OWNERS_FIRST, limit) : db.page<OwnerColumns>(OWNERS, after, limit))
    return rows.map((row) => ({ ...row }))
  },
  count: async (owner) => db.read(() => db.get<{ count: number }>(COUNT, owner))?.count ?? 0,
})

type EntryColumns = Omit<MemoryEntry, 'untrusted'> & { readonly untrusted: number }

const entries = (rows: readonly EntryColumns[]): MemoryEntry[] => rows.map((row) => ({ ...row, untrusted: row.untrusted !== 0 }))

async function find(db: Database, reader: string, words: readonly string[], limit: number): Promise<MemoryEntry[]> {
  if (words.length === 0) return []
  return entries(await db.page<EntryColumns>(SEARCH, reader, limit, `${readableBy(reader)} AND words : (${anyOf(words)})`))
}

/**
 * Reads the numbers of at most a hundred memories for each word, and then the rows of the best. A word that many have counts little. The event
 * loop goes on after each word: a text has up to sixty.
 */
async function similar(db: Database, reader: string, text: string, limit: number): Promise<MemoryEntry[]> {
  const scores = new Map<number, number>()
  const owners = readableBy(reader)
  for (const word of similarWords(text)) {
    const numbers = db.read(() => db.all<{ number: number }>(WITH_WORD, `${owners} AND words : "${word}"`, WITH_WORD_MAX))
    const weight = Math.log(1 + WITH_WORD_MAX / numbers.length)
    for (const { number } of numbers) scores.set(number, (scores.get(number) ?? 0) + weight)
    await setImmediate()
  }
  const best = [...scores].sort(([a, scoreA], [b, scoreB]) => scoreB - scoreA || b - a).slice(0, limit)
  return entries(db.read(() => best.flatMap(([number]) => db.get<EntryColumns>(READ, reader, number) ?? [])))
}

/** The condition of the index for the memories that a client may read. The index skips the memories of other owners. */
const readableBy = (reader: string): string => `owner_word : (${anyOf([reader, SHARED_MEMORIES, UNOWNED_MEMORIES].map(ownerWord))})`

/** Returns the owner as the column `owner_word` spells it. */
const ownerWord = (owner: string): string => `o${Buffer.from(owner).toString('hex').toUpperCase()}`

/** Quotes each word, so that none is an operator of the query language. */
const anyOf = (words: readonly string[]): string => words.map((word) => `"${word}"`).join(' OR ')
