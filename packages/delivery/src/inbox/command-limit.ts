/**
 * Bounds the commands of chats, each of which is an answer that is stored and sent, and the edits of messages whose turn had begun, of which
 * others read in their turns. Counted in memory, as shares are.
 */
import type { LimitedClient } from '@sluice/agent'
import { countedAs } from '@sluice/config'
import { BoundedMap, inWindow, roomAtMs } from '@sluice/kit'
import { type Clock, type Exceeded, isAtLeast } from '@sluice/sdk'

const WINDOW_MS = 600_000
/** The commands of one person within ten minutes: one every twenty seconds, which a person does not keep up and a program exceeds at once. */
export const COMMANDS_MAX = 30
/** The commands within ten minutes of all senders together whom only `*` admits: a program may write under many names. */
export const COMMANDS_OF_STRANGERS_MAX = 300
const CLIENTS_MAX = 10_000

interface CountedCommand {
  /** The number of the message. */
  readonly number: number
  readonly atMs: number
}

export class CommandLimit {
  readonly #clock: Pick<Clock, 'nowMs'>
  /** The commands of the last ten minutes by person, and the commands of all strangers; the oldest first. */
  readonly #counted = new BoundedMap<string, readonly CountedCommand[]>(CLIENTS_MAX)

  constructor(clock: Pick<Clock, 'nowMs'>) {
    this.#clock = clock
  }

  /** Counts a command, once for its message. Returns the limit that it would exceed; it then counts nothing. */
  take(client: LimitedClient, number: number): Exceeded | undefined {
    const nowMs = this.#clock.nowMs()
    const own = { key: countedAs(client), value: COMMANDS_MAX }
    const limits = isAtLeast(client.standing, 'listed') ? [own] : [own, { key: 'strangers', value: COMMANDS_OF_STRANGERS_MAX }]
    const counts = limits.map((limit) => ({ ...limit, recent: inWindow(this.#counted.get(limit.key) ?? [], nowMs, WINDOW_MS) }))
    // A command that waits for a turn of its sender to end asks again each second.
    if (counts.some(({ recent }) => recent.some((one) => one.number === number))) return undefined
    for (const { key, value, recent } of counts) {
      const freeAtMs = roomAtMs(recent, value, WINDOW_MS)
      if (freeAtMs !== undefined) return { limit: 'commands', key, value, freeAtMs }
    }
    for (const { key, recent } of counts) {
      // Deleted first, so that a full map drops the client that has been quiet for the longest time.
      this.#counted.delete(key)
      this.#counted.set(key, [...recent, { number, atMs: nowMs }])
    }
    return undefined
  }
}
