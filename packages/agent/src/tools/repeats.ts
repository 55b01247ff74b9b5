/** Counts identical tool calls, to stop a model that repeats itself. */
import { sha256Hex } from '@sluice/sdk'

/**
 * Counts the calls of one turn with the same tool and input. A call that the turn has not made before restarts the count of all others: a
 * test that runs again after each change of a file is not a loop.
 */
export class Repeats {
  readonly #calls = new Map<string, { count: number; period: number }>()
  #period = 0

  /** Returns the number of times that the call was made since the turn last made a new one, with this one. */
  count(tool: string, input: unknown): number {
    const key = `${tool} ${sha256Hex(canonicalJson(input))}`
    const before = this.#calls.get(key)
    if (!before) this.#period++
    const count = before?.period === this.#period ? before.count + 1 : 1
    this.#calls.set(key, { count, period: this.#period })
    return count
  }

  /** Resets all counts, because the model has lost the results. */
  reset(): void {
    this.#period++
  }
}

/** Returns the same text for equal inputs in any order of keys. */
const canonicalJson = (value: unknown): string =>
  JSON.stringify(value, (_key, member: unknown) =>
    typeof member === 'object' && member !== null && !Array.isArray(member)
      ? Object.fromEntries(Object.entries(member).sort(([a], [b]) => (a < b ? -1 : 1)))
      : member,
  )
