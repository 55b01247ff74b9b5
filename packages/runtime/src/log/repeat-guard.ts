/** Keeps a line that repeats without end from filling the disk: some repetitions a minute pass, and one line reports the others. */
import { createHash } from 'node:crypto'
import { BoundedMap } from '@sluice/kit'
import type { Clock } from '@sluice/sdk'

const WINDOW_MS = 60_000
const LINES_MAX = 256
/** A longer line is remembered by its digest, so that the remembered lines have a bounded size. */
const LINE_CHARS_MAX = 1024

export interface RepeatGuardOptions<Entry> {
  readonly clock: Pick<Clock, 'nowMs' | 'sleep'>
  /** How often each line passes in a minute. */
  readonly repeatsMax: number
  /** Called at the end of a minute in which lines were dropped, with the last of them. */
  report(last: Entry, dropped: number, secs: number): void
}

interface Window<Entry> {
  readonly sinceMs: number
  count: number
  /** The last dropped line. */
  last: Entry
}

export class RepeatGuard<Entry> {
  readonly #options: RepeatGuardOptions<Entry>
  readonly #windows = new BoundedMap<string, Window<Entry>>(LINES_MAX)

  constructor(options: RepeatGuardOptions<Entry>) {
    this.#options = options
  }

  /** Counts a line, and returns true if it passes. `line` decides which lines are the same. */
  passes(line: string, entry: Entry): boolean {
    const { clock, repeatsMax } = this.#options
    const key = line.length > LINE_CHARS_MAX ? createHash('sha256').update(line).digest('base64') : line
    const nowMs = clock.nowMs()
    const window = this.#windows.get(key)
    if (!window || nowMs - window.sinceMs >= WINDOW_MS || nowMs < window.sinceMs) {
      // Deleted first: a replaced key keeps its age, and would be evicted before keys that no line uses any more.
      this.#windows.delete(key)
      this.#windows.set(key, { sinceMs: nowMs, count: 1, last: entry })
      return true
    }
    window.count += 1
    window.last = entry
    if (window.count === repeatsMax + 1) void this.#reportLater(window, WINDOW_MS - (nowMs - window.sinceMs))
    return window.count <= repeatsMax
  }

  async #reportLater(window: Window<Entry>, waitMs: number): Promise<void> {
    await this.#options.clock.sleep(waitMs)
    this.#options.report(window.last, window.count - this.#options.repeatsMax, WINDOW_MS / 1000)
  }
}
