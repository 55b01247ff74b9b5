/** Keeps a line that repeats without end from filling the disk: some repetitions a minute pass, the rest are counted. */
import { createHash } from 'node:crypto'
import { BoundedMap } from '@sluice/kit'

const WINDOW_MS = 60_000
const LINES_MAX = 256
/** A longer line is remembered by its digest, so that the remembered lines have a bounded size. */
const LINE_CHARS_MAX = 1024

export interface Repetition {
  /** True: the line has passed as often as it may in this minute. */
  readonly isDropped: boolean
  /** The number of lines dropped in the minute that this line ends; 0 for a line that ends none. */
  readonly droppedBefore: number
}

/** Lets each line pass `repeatsMax` times a minute. */
export class RepeatGuard {
  readonly #repeatsMax: number
  readonly #seen = new BoundedMap<string, { sinceMs: number; count: number }>(LINES_MAX)

  constructor(repeatsMax: number) {
    this.#repeatsMax = repeatsMax
  }

  /** Counts the line. */
  take(line: string, atMs: number): Repetition {
    const key = line.length > LINE_CHARS_MAX ? createHash('sha256').update(line).digest('base64') : line
    const known = this.#seen.get(key)
    if (known && atMs - known.sinceMs < WINDOW_MS) {
      known.count += 1
      return { isDropped: known.count > this.#repeatsMax, droppedBefore: 0 }
    }
    // Deleted first: a replaced key keeps its age, and would be evicted before keys that no line uses any more.
    this.#seen.delete(key)
    this.#seen.set(key, { sinceMs: atMs, count: 1 })
    return { isDropped: false, droppedBefore: Math.max(0, (known?.count ?? 0) - this.#repeatsMax) }
  }
}
