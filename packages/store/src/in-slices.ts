/** Drops many rows without holding the writer for long. */
import type { GroupCommit } from './group-commit.ts'

/** Rows that are dropped in one transaction; each is on pages of its own. */
const DROPPED_MAX = 250

/** Drops at most `limit` rows, a few in each transaction; resolves to how many it were. */
export async function inSlices(writer: GroupCommit, limit: number, drop: (slice: number) => number): Promise<number> {
  for (let dropped = 0; ; ) {
    const slice = Math.min(limit - dropped, DROPPED_MAX)
    const count = slice > 0 ? await writer.write(() => drop(slice)) : 0
    dropped += count
    if (count < DROPPED_MAX) return dropped
  }
}
