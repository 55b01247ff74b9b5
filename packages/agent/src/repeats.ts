/** Notices a model that asks for the same thing over and over. */
import { sha256Hex } from '@sluice/sdk'

/** Counts the calls of one turn that ask the same of the same tool. */
export class Repeats {
  readonly #counts = new Map<string, number>()

  /** How often this call has been asked for, this time included. */
  count(tool: string, input: unknown): number {
    const key = `${tool} ${sha256Hex(canonicalJson(input))}`
    const count = (this.#counts.get(key) ?? 0) + 1
    this.#counts.set(key, count)
    return count
  }
}

/** One text for inputs that say the same, whatever the order of their keys. */
const canonicalJson = (value: unknown): string =>
  JSON.stringify(value, (_key, member: unknown) =>
    typeof member === 'object' && member !== null && !Array.isArray(member)
      ? Object.fromEntries(Object.entries(member).sort(([a], [b]) => (a < b ? -1 : 1)))
      : member,
  )
