/** The words of memories in SQLite: a full-text index, whose rank is BM25. */
import { setImmediate } from 'node:timers/promises'
import { SHARED_MEMORIES, UNOWNED_MEMORIES } from '@sluice/sdk'
import { all, type ColdDatabase, type MemoryColumns, type MemoryDialect, type Steps } from '../cold/cold-database.ts'
import { MEMORY_COLUMNS, READABLE } from '../cold/memory.ts'

/** The newest memories that have a word count for it, so that a word that all have costs little. */
const WITH_WORD_MAX = 100
const WITH_WORD = 'SELECT rowid AS number FROM memory_words WHERE memory_words MATCH $1 ORDER BY rowid DESC LIMIT $2'
const READ = `SELECT ${MEMORY_COLUMNS} FROM memories WHERE number = $2 AND ${READABLE}`

export const MEMORY: MemoryDialect = {
  words: '$7',
  counts: 'memory_counts',
  search: `
    SELECT ${MEMORY_COLUMNS} FROM memory_words JOIN memories ON number = memory_words.rowid
    WHERE memory_words MATCH $3 AND ${READABLE} ORDER BY bm25(memory_words, 0, 1), updated_at DESC LIMIT $2`,
  match: (reader, words) => `${readableBy(reader)} AND words : (${anyOf(words)})`,
  similar,
}

/**
 * Reads the numbers of at most a hundred memories for each word, and then the rows of the best. A word that many have counts little. The event
 * loop goes on after each word: a text has up to sixty.
 */
async function similar(db: ColdDatabase, reader: string, words: readonly string[], limit: number): Promise<readonly MemoryColumns[]> {
  const scores = new Map<number, number>()
  const owners = readableBy(reader)
  for (const word of words) {
    const numbers = await db.read(() => all<{ number: number }>(WITH_WORD, `${owners} AND words : "${word}"`, WITH_WORD_MAX))
    const weight = Math.log(1 + WITH_WORD_MAX / numbers.length)
    for (const { number } of numbers) scores.set(number, (scores.get(number) ?? 0) + weight)
    await setImmediate()
  }
  const best = [...scores].sort(([a, scoreA], [b, scoreB]) => scoreB - scoreA || b - a).slice(0, limit)
  return db.read(function* (): Steps<MemoryColumns[]> {
    return (yield best.map(([number]) => ({ text: READ, values: [reader, number] }))).flat() as MemoryColumns[]
  })
}

/** The condition of the index for the memories that a client may read. The index skips the memories of other owners. */
const readableBy = (reader: string): string => `owner_word : (${anyOf([reader, SHARED_MEMORIES, UNOWNED_MEMORIES].map(ownerWord))})`

/** Returns the owner as the column `owner_word` spells it. */
const ownerWord = (owner: string): string => `o${Buffer.from(owner).toString('hex').toUpperCase()}`

/** Quotes each word, so that none is an operator of the query language. */
const anyOf = (words: readonly string[]): string => words.map((word) => `"${word}"`).join(' OR ')
