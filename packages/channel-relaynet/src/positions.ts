/** How far each relay was read, kept over restarts. */
import { Cursors, type Position } from '@sluice/kit'
import { members } from '@sluice/kit/foreign-json'
import type { Gap, Host, ListenCursors } from '@sluice/sdk'
import { HIDDEN_SECS } from './hidden-time.ts'
import { Seen } from './seen.ts'

interface RelayPosition extends Position {
  /** Milliseconds since 1970 up to which every message of the relay is durable, as text. */
  readonly after: string
  /** When the relay was read for the first time, as text. */
  readonly begin: string
}

const POSITIONS_MAX = 64
/** A day more than gift wraps hide: for messages that reach a relay late. */
const REREAD_SECS = HIDDEN_SECS + 86_400
/** How much earlier than the position a message may have been written: its sender was offline, or its clock is slow. */
const LATE_SECS = 172_800
/** Clocks differ. */
const SKEW_SECS = 900
/** A message from further in the future is refused, because its id could not be kept for long enough. */
export const FUTURE_SECS_MAX = 86_400
/** Older positions are moved here: the ids of all messages since then would have to be kept. */
const AWAY_SECS_MAX = 14 * 86_400

export class Positions implements ListenCursors {
  readonly seen: Seen
  readonly #host: Host
  readonly #cursors: Cursors<RelayPosition>
  /** Called before each write, to move the positions of relays that are read. */
  onFlush: () => void = () => undefined

  constructor(host: Host) {
    this.#host = host
    this.seen = new Seen(host.keyValue)
    this.#cursors = new Cursors<RelayPosition>({
      keyValue: host.keyValue,
      key: 'positions',
      groups: [{ max: POSITIONS_MAX, has: () => true }],
      read(_scope, stored) {
        const { after, begin } = members(stored)
        return isMs(after) && isMs(begin) ? { after, begin } : undefined
      },
    })
  }

  async load(): Promise<void> {
    await this.#cursors.load()
    await this.seen.load()
  }

  async flush(): Promise<void> {
    this.onFlush()
    await this.seen.flush()
    await this.#cursors.flush()
  }

  /** Forgets relays that are not configured any more: should they return, the ids of their messages are not known. */
  keepOnly(relays: readonly string[]): void {
    for (const [relay] of this.#cursors.entries()) if (!relays.includes(relay)) this.#cursors.forget(relay)
  }

  /** Begins to follow a relay. Calls `onGap` if it was read last so long ago that messages are skipped. */
  follow(relay: string, onGap: (gap: Gap) => void): void {
    const nowMs = this.#host.clock.nowMs()
    this.#cursors.follow(relay, { after: String(nowMs), begin: String(nowMs) })
    const { after } = this.#of(relay)
    const oldestMs = nowMs - AWAY_SECS_MAX * 1000
    if (after >= oldestMs) return
    onGap({ sinceMs: after, why: `messages of more than ${AWAY_SECS_MAX / 86_400} days are not read` })
    this.#cursors.advance(relay, String(oldestMs))
  }

  /** Records that every message that the relay has sent until now is durable. */
  advance(relay: string): void {
    this.#cursors.advance(relay, String(this.#host.clock.nowMs()))
  }

  /** Returns the time in seconds since which the events of a relay have to be read. */
  readSince(relay: string): number {
    return Math.floor(this.#of(relay).after / 1000) - REREAD_SECS
  }

  /** Returns the time in seconds before which a message from this relay is not accepted: it may have been answered long ago. */
  acceptSince(relay: string): number {
    const { after, begin } = this.#of(relay)
    return Math.floor(Math.max(after / 1000 - LATE_SECS, begin / 1000 - SKEW_SECS))
  }

  /** Forgets the ids of messages that no relay of `relays` can bring again. */
  prune(relays: readonly string[]): void {
    this.seen.forgetBefore(Math.min(...relays.map((relay) => this.acceptSince(relay))))
  }

  #of(relay: string): { readonly after: number; readonly begin: number } {
    const { after, begin } = this.#cursors.get(relay) ?? {}
    const nowMs = this.#host.clock.nowMs()
    return { after: Number(after ?? nowMs), begin: Number(begin ?? nowMs) }
  }
}

const isMs = (value: unknown): value is string => typeof value === 'string' && /^\d{1,15}$/.test(value)
