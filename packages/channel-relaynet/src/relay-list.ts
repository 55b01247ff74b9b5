/** Lists of relays on which people receive private messages (kind 10050 of NIP-17). */
import { BoundedMap } from '@sluice/kit'
import type { Clock } from '@sluice/sdk'
import { readSigned, type SignedEvent, tagValues } from './event.ts'
import type { RelayLink } from './relay-link.ts'

export const RELAY_LIST = 10_050

const KEPT_MAX = 1000
const KEPT_MS = 3_600_000
/** A person without a list may publish one soon. */
const MISSING_MS = 300_000
/** Lists should be small; more relays are not tried. */
export const RELAYS_MAX = 4

interface Kept {
  readonly relays: readonly string[]
  readonly untilMs: number
}

export class RelayLists {
  readonly #clock: Clock
  readonly #kept = new BoundedMap<string, Kept>(KEPT_MAX)

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Returns the relays of a person, as far as one of `links` knows them; none without a list. */
  async of(pubkey: string, links: readonly RelayLink[], signal: AbortSignal): Promise<readonly string[]> {
    const kept = this.#kept.get(pubkey)
    if (kept && kept.untilMs > this.#clock.monotonicMs()) return kept.relays
    const { list, isComplete } = await findList(pubkey, links, signal)
    // While no relay answers, the last known list is better than none.
    if (!list && kept && !isComplete) return kept.relays
    const relays = list ? relaysIn(list).slice(0, RELAYS_MAX) : []
    const untilMs = this.#clock.monotonicMs() + (relays.length > 0 ? KEPT_MS : MISSING_MS)
    if (list || isComplete) {
      this.#kept.delete(pubkey)
      this.#kept.set(pubkey, { relays, untilMs })
    }
    return relays
  }

  /** Has the list read again for the next message, because its relays did not accept this one. */
  forget(pubkey: string): void {
    this.#kept.delete(pubkey)
  }
}

/** Returns the newest list that the relays know, and whether at least one of them answered. */
export async function findList(pubkey: string, links: readonly RelayLink[], signal: AbortSignal) {
  const filter = { kinds: [RELAY_LIST], authors: [pubkey], limit: 1 }
  const answers = await Promise.allSettled(links.map((link) => link.stored(filter, signal)))
  const events = answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value.slice(0, 5) : []))
  const lists = events.map(readSigned).filter((event) => event?.kind === RELAY_LIST && event.pubkey === pubkey) as SignedEvent[]
  const [list] = lists.toSorted((a, b) => b.created_at - a.created_at)
  return { list, isComplete: answers.some(({ status }) => status === 'fulfilled') }
}

/** Returns the usable addresses of a list. */
export const relaysIn = (list: SignedEvent): string[] => [
  ...new Set(
    tagValues(list, 'relay').flatMap((text) => {
      const url = URL.parse(text.trim())
      const isUsable = url && /^wss?:$/.test(url.protocol) && url.username === '' && url.password === ''
      return isUsable ? [url.search === '' ? url.href.replace(/\/$/, '') : url.href] : []
    }),
  ),
]
