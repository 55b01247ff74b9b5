/** The words of memories in PostgreSQL: a `tsvector`. */
import { MEMORY_COLUMNS, type MemoryDialect, READABLE } from '@sluice/store/shared'

const QUERY = `(
  SELECT string_agg(plainto_tsquery('simple', word)::text, ' | ')::tsquery FROM unnest($3::text[]) AS word
  WHERE numnode(plainto_tsquery('simple', word)) > 0)`

export const MEMORY: MemoryDialect = {
  words: "to_tsvector('simple', $7)",
  counts: '(SELECT owner, count(*) AS count FROM memories GROUP BY owner) AS counts',
  // Divides by the logarithm of the length of an entry, as BM25 prefers short ones, too.
  search: `
    SELECT ${MEMORY_COLUMNS} FROM memories WHERE words @@ ${QUERY} AND ${READABLE}
    ORDER BY ts_rank(words, ${QUERY}, 1) DESC, updated_at DESC LIMIT $2`,
  match: (_, words) => words,
}
