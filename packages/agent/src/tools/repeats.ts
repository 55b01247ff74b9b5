/** Counts identical tool calls, to stop a model that repeats itself. */
import { sha256Hex } from '@sluice/sdk'

/** Counts the calls of one turn with the same tool and input. */
export class Repeats {
  readonly #counts = new Map<string, number>()

  /** Returns the number of times that the call was made, with this one. */
  count(tool: string, input: unknown): number {
    const key = `${tool} ${sha256Hex(canonicalJson(input))}`
    const count = (this.#counts.get(key) ?? 0) + 1
    this.#counts.set(key, count)
    return count
  }
}

/** Returns the same text for equal inputs in any order of keys. */
const canonicalJson = (value: unknown): string =>
  JSON.stringify(value, (_key, member: unknown) =>
    typeof member === 'object' && member !== null && !Array.isArray(member)
      ? Object.fromEntries(Object.entries(member).sort(([a], [b]) => (a < b ? -1 : 1)))
      : member,
  )
