/** The messages of one relay over one connection: first the stored ones in their order, then new ones as they come. */
import { members } from '@sluice/kit/foreign-json'
import { AppError, type Clock } from '@sluice/sdk'
import { GIFT_WRAP } from './gift-wrap.ts'
import type { Candidate, Intake } from './intake.ts'
import { LEGACY_MESSAGE } from './nip04.ts'
import type { Positions } from './positions.ts'
import { type Filter, type RelayLink, shownUrl } from './relay-link.ts'

export interface FeedHooks {
  /** The relay serves the subscription. */
  onReady(): void
  onEvent(): void
}

/** Reading from the relay pauses at the first number of unread events, and goes on below the second. */
const PENDING_MAX = 200
const PENDING_MIN = 50
/** At most this many stored messages, and this many characters, are sorted by time before their delivery. */
const HELD_MAX = 5000
const HELD_CHARS_MAX = 4_194_304
const PAGES_MAX = 200
/** The events that are asked for at once. Relays may send fewer. */
const PAGE_EVENTS = 500
const STORED_MS = 30_000
/** Relays may lose an event that comes while they begin a subscription, or answer it from a cache, so they are asked once more. */
const RECHECK_MS = 30_000

export class Feed {
  readonly #link: RelayLink
  readonly #intake: Intake
  readonly #positions: Positions
  /** Stored messages that are not delivered yet; undefined once they are. */
  #held: Candidate[] | undefined = []
  #heldChars = 0
  #pending = 0
  #isPaused = false
  /** A message could not be stored before the channel stopped. */
  #hasFailed = false
  /** Settles when every event that has arrived was handled. */
  #handled: Promise<unknown> = Promise.resolve()

  constructor(link: RelayLink, intake: Intake, positions: Positions) {
    this.#link = link
    this.#intake = intake
    this.#positions = positions
  }

  /** Whether every message that the relay has sent is durable. */
  get isIdle(): boolean {
    return this.#held === undefined && this.#pending === 0 && !this.#hasFailed
  }

  /**
   * Reads until the connection ends or the relay ends the subscription, and rejects with the reason. `onReady` is called once
   * the relay serves the subscription; `onEvent` for each event.
   */
  async read(pubkey: string, clock: Clock, hooks: FeedHooks): Promise<never> {
    const filter: Filter = { kinds: [LEGACY_MESSAGE, GIFT_WRAP], '#p': [pubkey], since: this.#positions.readSince(this.#link.url) }
    const stored = Promise.withResolvers<undefined>()
    const ended = Promise.withResolvers<AppError>()
    const answered = new AbortController()
    let hasEvents = false
    void this.#link.closed.then(ended.resolve)
    this.#link.subscribe(filter, {
      onEvent: (event) => {
        hasEvents = true
        hooks.onEvent()
        this.#take(event)
      },
      onStored: () => stored.resolve(undefined),
      onClosed: ended.resolve,
    })
    const silent = clock
      .sleep(STORED_MS, answered.signal)
      .then(() => new AppError('unavailable', `${shownUrl(this.#link.url)} did not answer the subscription`))
    const failure = await Promise.race([stored.promise, ended.promise, silent])
    answered.abort()
    if (failure) throw failure
    hooks.onReady()
    const over = new AbortController()
    const caughtUp = (hasEvents ? this.#readPages(filter) : Promise.resolve())
      .then(() => this.#release())
      .then(() => clock.sleep(RECHECK_MS, over.signal))
      // A failure ends with the connection, if it concerns more than this one request.
      .then(() => (over.signal.aborted ? undefined : this.#readPages(filter).catch(() => undefined)))
    try {
      throw await Promise.race([ended.promise, caughtUp.then(() => ended.promise)])
    } finally {
      over.abort()
    }
  }

  /**
   * A relay sends only its newest events for one request, so earlier ones are asked for until none is left. The pages begin at the
   * newest event, whatever the subscription has brought: new events come there, too, and may be back-dated by days.
   */
  async #readPages(filter: Filter): Promise<void> {
    let until = Number.POSITIVE_INFINITY
    for (let page = 0; page < PAGES_MAX && until >= (filter.since ?? 0); page += 1) {
      const events = await this.#readPage({ ...filter, limit: PAGE_EVENTS, ...(Number.isFinite(until) && { until }) })
      const oldest = oldestOf(events)
      // The page has no event, or the relay ignores `until`.
      if (oldest > until || !Number.isFinite(oldest)) return
      if (oldest < until) until = oldest
      else {
        // All are of one second, which may have more than the limit; earlier events follow.
        if (events.length >= PAGE_EVENTS) await this.#readPage({ ...filter, since: until, until })
        until -= 1
      }
    }
  }

  /** Returns once the events were handled, so that no more than one page waits in memory. */
  async #readPage(filter: Filter): Promise<readonly unknown[]> {
    const events = await this.#link.stored(filter, new AbortController().signal)
    for (const event of events) this.#take(event)
    await this.#handled
    return events
  }

  #take(event: unknown): void {
    this.#pending += 1
    if (this.#pending >= PENDING_MAX && !this.#isPaused) {
      this.#isPaused = true
      this.#link.pause()
    }
    const handled = this.#handle(event).finally(() => {
      this.#pending -= 1
      if (this.#isPaused && this.#pending <= PENDING_MIN) {
        this.#isPaused = false
        this.#link.resume()
      }
    })
    this.#handled = Promise.allSettled([this.#handled, handled])
  }

  async #handle(event: unknown): Promise<void> {
    const candidate = await this.#intake.read(event, this.#link.url)
    if (!candidate) return
    if (this.#held) {
      this.#held.push(candidate)
      this.#heldChars += JSON.stringify(candidate.inbounds).length
      if (this.#held.length < HELD_MAX && this.#heldChars < HELD_CHARS_MAX) return
      this.#heldChars = 0
      await this.#deliver(sorted(this.#held.splice(0)))
    } else await this.#deliver([candidate])
  }

  /** Delivers the stored messages, and from now on each one as it comes. */
  async #release(): Promise<void> {
    await this.#handled
    const held = this.#held ?? []
    this.#held = undefined
    this.#pending += 1
    await this.#deliver(sorted(held))
    this.#pending -= 1
  }

  async #deliver(candidates: readonly Candidate[]): Promise<void> {
    if (!(await this.#intake.deliver(candidates))) this.#hasFailed = true
  }
}

/** Sorts by the time at which the messages were written. */
const sorted = (candidates: readonly Candidate[]): readonly Candidate[] => candidates.toSorted((a, b) => a.createdAt - b.createdAt)

/** Returns the time of the oldest event; infinity without an event. */
const oldestOf = (events: readonly unknown[]): number =>
  events.reduce<number>((oldest, event) => {
    const { created_at: createdAt } = members(event)
    return typeof createdAt === 'number' ? Math.min(oldest, createdAt) : oldest
  }, Number.POSITIVE_INFINITY)
