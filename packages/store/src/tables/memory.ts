/** The words of memories in SQLite: a full-text index, whose rank is BM25. */
import { SHARED_MEMORIES, UNOWNED_MEMORIES } from '@sluice/sdk'
import { all, type ColdDatabase, type MemoryColumns, type MemoryDialect, type Steps } from '../cold/cold-database.ts'
import { MEMORY_COLUMNS, READABLE } from '../cold/memory.ts'
import { type SimilarWords, similarWords } from './memory-words.ts'

/** The rows that one query for similar memories reads. */
const FOUND_MAX = 16
/** A word counts as rare when at most this many of the newest memories with any of the words have it. */
const RARE_COUNT_MAX = 1
const RARE_WORDS_MAX = 4
/** The score that a word adds to a memory when all memories have the word. */
const COMMON = 0.1
/** A plain join would read all memories of the owner. */
const WITH_WORDS = `
  SELECT ${MEMORY_COLUMNS}, memories.words AS words, number
  FROM (SELECT rowid AS found FROM memory_words WHERE memory_words MATCH $2 ORDER BY rowid DESC LIMIT $3) CROSS JOIN memories ON number = found
  WHERE ${READABLE}`
const OWNERS = `SELECT owner FROM memory_counts WHERE owner IN ($1, '${SHARED_MEMORIES}', '${UNOWNED_MEMORIES}')`

export const MEMORY: MemoryDialect = {
  words: '$7',
  counts: 'memory_counts',
  search: `
    SELECT ${MEMORY_COLUMNS} FROM memory_words JOIN memories ON number = memory_words.rowid
    WHERE memory_words MATCH $3 AND ${READABLE} ORDER BY bm25(memory_words, 0, 1), updated_at DESC LIMIT $2`,
  match: (reader, words) => `${readableBy(reader)} AND words : (${anyOf(words)})`,
  similar,
}

type Row = MemoryColumns & { readonly words: string; readonly number: number }

interface Found {
  readonly row: MemoryColumns
  /** The words and parts that the memory shares with the text. */
  readonly shared: readonly string[]
}

/**
 * Resolves to the memories that share most words with a text. A word that many of them have counts little. Nothing but the counts is read for
 * an owner without memories.
 */
async function similar(db: ColdDatabase, reader: string, text: string, limit: number): Promise<readonly MemoryColumns[]> {
  const owners = (await db.read(() => all<{ owner: string }>(OWNERS, reader))).map(({ owner }) => owner)
  if (owners.length === 0) return []
  const found = await db.read(() => withWords(reader, owners, similarWords(text)))
  const counts = countsOf(found)
  const weight = (word: string): number => COMMON + Math.log(found.size / (counts.get(word) ?? 1))
  return [...found]
    .map(([number, { row, shared }]) => ({ number, row, score: shared.reduce((sum, word) => sum + weight(word), 0) }))
    .sort((a, b) => b.score - a.score || b.number - a.number)
    .slice(0, limit)
    .map(({ row }) => row)
}

/**
 * Reads the newest memories with any of the words. Where these are more than it reads, it also reads those with the words that few of them
 * have.
 */
function* withWords(reader: string, owners: readonly string[], { whole, parts }: SimilarWords): Steps<ReadonlyMap<number, Found>> {
  const found = new Map<number, Found>()
  const asked = [...whole, ...parts]
  function* find(words: readonly string[]): Steps<void> {
    if (words.length === 0) return
    const rows = yield* all<Row>(WITH_WORDS, reader, `${ownedBy(owners)} AND words : (${anyOf(words)})`, FOUND_MAX)
    for (const { words: own, number, ...row } of rows)
      if (!found.has(number)) found.set(number, { row, shared: asked.filter((word) => hasWord(own, word)) })
  }
  yield* find(asked)
  if (found.size < FOUND_MAX) return found
  const counts = countsOf(found)
  const rare = (words: readonly string[]) => words.filter((word) => (counts.get(word) ?? 0) <= RARE_COUNT_MAX).slice(0, RARE_WORDS_MAX)
  yield* find([...rare(whole), ...rare(parts)])
  return found
}

/** Counts the memories that have each word. */
function countsOf(found: ReadonlyMap<number, Found>): ReadonlyMap<string, number> {
  const counts = new Map<string, number>()
  for (const { shared } of found.values()) for (const word of shared) counts.set(word, (counts.get(word) ?? 0) + 1)
  return counts
}

/** Whether the words of a row, which spaces divide, have this one. */
const hasWord = (own: string, word: string): boolean => {
  for (let at = own.indexOf(word); at >= 0; at = own.indexOf(word, at + 1))
    if ((at === 0 || own[at - 1] === ' ') && (at + word.length === own.length || own[at + word.length] === ' ')) return true
  return false
}

/** The condition of the index for the memories that a client may read. The index skips the memories of other owners. */
const readableBy = (reader: string): string => ownedBy([reader, SHARED_MEMORIES, UNOWNED_MEMORIES])

const ownedBy = (owners: readonly string[]): string => `owner_word : (${anyOf(owners.map(ownerWord))})`

/** Returns the owner as the column `owner_word` spells it. */
const ownerWord = (owner: string): string => `o${Buffer.from(owner).toString('hex').toUpperCase()}`

/** Quotes each word, so that none is an operator of the query language. */
const anyOf = (words: readonly string[]): string => words.map((word) => `"${word}"`).join(' OR ')
