/** The last lines of the log, for people who look at it over the API. Older lines are only where the log is written to. */
import { randomBytes } from 'node:crypto'
import type { LogLevel } from './log.ts'

const LINES_MAX = 1000
/** The longest lines together: an idle daemon must not hold more. */
const CHARS_MAX = 262_144

export interface RecentLine {
  /** Grows by one. */
  readonly number: number
  readonly level: LogLevel
  /** The line as JSON. */
  readonly json: string
}

export class RecentLog {
  /** The name of this run of the daemon, which numbers the lines. */
  readonly run = randomBytes(6).toString('base64url')
  readonly #lines: RecentLine[] = []
  readonly #listeners = new Set<(line: RecentLine) => void>()
  #chars = 0
  #number = 0

  readonly add = (json: string, level: LogLevel): void => {
    const line = { number: ++this.#number, level, json }
    this.#lines.push(line)
    this.#chars += json.length
    while (this.#lines.length > LINES_MAX || (this.#chars > CHARS_MAX && this.#lines.length > 1)) {
      this.#chars -= this.#lines.shift()?.json.length ?? 0
    }
    for (const listener of this.#listeners) listener(line)
  }

  /** Returns the lines after this number, oldest first. */
  after(number: number): readonly RecentLine[] {
    return this.#lines.filter((line) => line.number > number)
  }

  /** Calls `listener` with each new line. Returns an unsubscribe function. A listener must not throw, and must not log. */
  listen(listener: (line: RecentLine) => void): () => void {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }
}
