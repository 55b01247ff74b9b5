/** Counts the turns, streams and files that each client holds at once, so that no client takes the room of the others (`[limits]`). */
import { type ClientShares, countedAs, type LimitedClient } from '@sluice/config'
import { BoundedMap, type Sharing } from '@sluice/kit'
import { AppError, type Clock, type Events, type FileShare, fileOwner, type KeptBytes } from '@sluice/sdk'

export interface SharesDeps {
  readonly clock: Pick<Clock, 'monotonicMs' | 'nowMs'>
  readonly events: Pick<Events, 'emit'>
  /** Returns the shares in force of a client. */
  sharesOf(client: LimitedClient): ClientShares
  /** Lists the other accounts of the person of a client. Absent: no accounts are linked. */
  besides?(client: LimitedClient): readonly string[]
  /** Lists the running turns of the clients that have a share of them. */
  running?(): Iterable<readonly [client: string, turns: number]>
}

/** A counted amount. `release` is idempotent. */
export interface Held extends Disposable {
  release(): void
}

const megabytes = (bytes: number): number => Math.round(bytes / 1024 / 1024)
const same = (value: number): number => value

/** The key of each share in `[limits]`, its value there, and the message for a client that has used it up: the cause and the cure. */
const SHARES = {
  turnsWaiting: {
    key: 'turns_waiting',
    toValue: same,
    refusal: (max) => `${max} of your turns are waiting: repeat the request when one of them has begun`,
  },
  waitingBytes: {
    key: 'waiting_mb',
    toValue: megabytes,
    refusal: (max) => `Your waiting turns would contain more than ${max} MB of text: repeat the request when one of them has begun`,
  },
  streams: {
    key: 'streams',
    toValue: same,
    refusal: (max) => `You have ${max} streams open: close one of them first`,
  },
  downloads: {
    key: 'downloads',
    toValue: same,
    refusal: (max) => `You are downloading ${max} files: repeat the request when one of them has ended`,
  },
  attachmentBytes: {
    key: 'attachments_mb',
    toValue: megabytes,
    refusal: (max) => `Your attachments would take more than ${max} MB: they are kept until the conversations that name them are deleted`,
  },
} as const satisfies Partial<
  Record<keyof ClientShares, { readonly key: string; toValue(amount: number): number; refusal(max: number): string }>
>

/** A share that refuses what exceeds it. */
export type ShareName = keyof typeof SHARES
const NAMES = Object.keys(SHARES) as ShareName[]

/** The key of such a share in `[limits]`. */
export type ShareKey = (typeof SHARES)[ShareName]['key']

/** A share of waiting turns that a client would exceed. */
export interface ExceededShare {
  /** The client, or the pool of all strangers. */
  readonly key: string
  readonly limit: 'turns_waiting' | 'waiting_mb'
  /** The share, as `[limits]` counts it. */
  readonly value: number
}

/** The amount of a share that a client holds, as `[limits]` counts it. */
export interface HeldShare {
  readonly client: string
  readonly share: ShareKey | 'turns_running'
  readonly held: number
}

const RETRY_AFTER_SECS = 5
/** One event about a used up share is enough for this time. */
const QUIET_MS = 3_600_000
const REPORTED_MAX = 1000

export class Shares {
  readonly #deps: SharesDeps
  /** What each client holds of each share; a client that holds nothing is in no map. */
  readonly #held: Record<ShareName, Map<string, number>> = {
    turnsWaiting: new Map(),
    waitingBytes: new Map(),
    streams: new Map(),
    downloads: new Map(),
    attachmentBytes: new Map(),
  }
  /** When an event about a client and a share was emitted. */
  readonly #reported = new BoundedMap<string, number>(REPORTED_MAX)

  constructor(deps: SharesDeps) {
    this.#deps = deps
  }

  of(client: LimitedClient): ClientShares {
    return this.#deps.sharesOf(client)
  }

  /** Returns the share of running turns, for the queue of turns; undefined for an operator. */
  runningOf(client: LimitedClient): Sharing | undefined {
    if (client.standing === 'operator') return undefined
    return { owner: countedAs(client), share: () => this.of(client).turnsRunning }
  }

  /** Counts an amount until it is released. Throws `share_used` when the client would then hold more than its share. */
  take(client: LimitedClient, share: ShareName, amount = 1): Held {
    this.check(client, share, this.heldBy(client, share) + amount)
    return this.count(client, share, amount)
  }

  /** Throws `share_used` when the amount, which may be counted elsewhere, is more than the share of the client. */
  check(client: LimitedClient, share: ShareName, amount: number): void {
    const max = this.of(client)[share]
    if (amount <= max) return
    const { key, toValue, refusal } = SHARES[share]
    this.#report({ key: countedAs(client), limit: key, value: toValue(max) })
    throw new AppError('share_used', `${refusal(toValue(max))} ([limits] ${key})`, { retryAfterSecs: RETRY_AFTER_SECS })
  }

  /** Returns the share that the files of an owner count for. Linked accounts share their person's files, and not a room's. */
  ofFiles(client: LimitedClient, owner: string): FileShare {
    const { attachmentBytes, pool } = this.of(client)
    const max = { own: attachmentBytes, pool: pool?.attachmentBytes ?? Number.POSITIVE_INFINITY }
    const isLimited = Math.min(max.own, max.pool) < Number.POSITIVE_INFINITY
    return {
      others: owner === fileOwner(null, client.client) ? (this.#deps.besides?.(client) ?? []) : [],
      pool: pool?.key,
      limit: isLimited ? { max, check: (kept) => this.checkAttachments(client, kept) } : undefined,
    }
  }

  /** Throws `share_used` when the client, or the pool of all strangers, would keep more attachments than its share. */
  checkAttachments(client: LimitedClient, { own, pool }: KeptBytes): void {
    this.check(client, 'attachmentBytes', own)
    const shared = this.of(client).pool
    if (!shared || pool <= shared.attachmentBytes) return
    const max = megabytes(shared.attachmentBytes)
    this.#report({ key: shared.key, limit: 'attachments_mb', value: max })
    const refusal = `The attachments of all strangers would take more than ${max} MB: they are kept until the conversations that name them are deleted`
    throw new AppError('share_used', `${refusal} ([limits.strangers.pool] attachments_mb)`, { retryAfterSecs: RETRY_AFTER_SECS })
  }

  /**
   * Throws `share_used` when a turn with this text would be refused because too many turns of its client wait. The first waiting turn may have a
   * text of any length.
   */
  checkWaiting(client: LimitedClient, bytes: number): void {
    const [turns, text] = [this.heldBy(client, 'turnsWaiting'), this.heldBy(client, 'waitingBytes')]
    this.check(client, 'turnsWaiting', turns + 1)
    if (text > 0) this.check(client, 'waitingBytes', text + bytes)
  }

  /** Returns the share that a further turn with this text would exceed while it waits: that of the client or of all strangers. */
  exceededBy(client: LimitedClient, bytes: number): ExceededShare | undefined {
    const { turnsWaiting, waitingBytes, pool } = this.of(client)
    const [turns, text] = [this.heldBy(client, 'turnsWaiting'), this.heldBy(client, 'waitingBytes')]
    if (turns + 1 > turnsWaiting) return { key: countedAs(client), limit: 'turns_waiting', value: turnsWaiting }
    if (text > 0 && text + bytes > waitingBytes) return { key: countedAs(client), limit: 'waiting_mb', value: megabytes(waitingBytes) }
    if (pool && this.heldBy({ client: pool.key }, 'turnsWaiting') + 1 > pool.turnsWaiting)
      return { key: pool.key, limit: 'turns_waiting', value: pool.turnsWaiting }
    return undefined
  }

  /** Counts a waiting turn and its text until it is released. Throws `share_used` when the client would hold more than its share. */
  takeWaiting(client: LimitedClient, bytes: number): Held {
    this.checkWaiting(client, bytes)
    return this.countWaiting(client, bytes)
  }

  /** Counts a waiting turn as `takeWaiting` does, also beyond the share. */
  countWaiting(client: LimitedClient, bytes: number): Held {
    const { pool } = this.of(client)
    const held = [this.count(client, 'turnsWaiting'), this.count(client, 'waitingBytes', bytes)]
    if (pool) held.push(hold(this.#held.turnsWaiting, pool.key, 1))
    return heldBy(() => {
      for (const { release } of held) release()
    })
  }

  /** Counts an amount until it is released, also beyond the share. */
  count(client: LimitedClient, share: ShareName, amount = 1): Held {
    return hold(this.#held[share], countedAs(client), amount)
  }

  /** Changes a count without an object to release it, for shares that are counted thousands of times. */
  add(client: LimitedClient, share: ShareName, change: number): void {
    add(this.#held[share], countedAs(client), change)
  }

  heldBy(client: Pick<LimitedClient, 'client' | 'person'>, share: ShareName): number {
    return this.#held[share].get(countedAs(client)) ?? 0
  }

  /** Lists what clients and pools hold now, in the order of the shares; the largest amounts first. */
  list(limit: number): HeldShare[] {
    const largest = (share: HeldShare['share'], held: Iterable<readonly [string, number]>): HeldShare[] =>
      [...held]
        .toSorted(([, a], [, b]) => b - a)
        .slice(0, limit)
        .map(([client, amount]) => ({ client, share, held: amount }))
    return [
      ...largest('turns_running', this.#deps.running?.() ?? []),
      ...NAMES.flatMap((share) => {
        const { key, toValue } = SHARES[share]
        return largest(key, this.#held[share]).map(({ held, ...one }) => ({ ...one, held: toValue(held) }))
      }),
    ]
  }

  /** Emits an event, unless one about this client and share was emitted lately. */
  #report({ key, limit, value }: { readonly key: string; readonly limit: ShareKey; readonly value: number }): void {
    const { clock, events } = this.#deps
    const about = `${limit} ${key}`
    const nowMs = clock.monotonicMs()
    if (nowMs - (this.#reported.get(about) ?? Number.NEGATIVE_INFINITY) < QUIET_MS) return
    this.#reported.delete(about)
    this.#reported.set(about, nowMs)
    events.emit({
      type: 'limit_reached',
      client: key,
      limit,
      value,
      until: new Date(clock.nowMs() + RETRY_AFTER_SECS * 1000).toISOString(),
    })
  }
}

function hold(held: Map<string, number>, key: string, amount: number): Held {
  add(held, key, amount)
  let isHeld = true
  return heldBy(() => {
    if (isHeld) add(held, key, -amount)
    isHeld = false
  })
}

function add(held: Map<string, number>, key: string, change: number): void {
  const next = (held.get(key) ?? 0) + change
  if (next > 0) held.set(key, next)
  else held.delete(key)
}

const heldBy = (release: () => void): Held => ({ release, [Symbol.dispose]: release })
