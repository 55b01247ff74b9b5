/** Counts what each client holds at once, so that one of them cannot take the room of the others (`[limits]`). */
import type { ClientShares, LimitedClient } from '@sluice/config'
import { AppError } from '@sluice/sdk'

export interface SharesDeps {
  /** Returns the shares in force of a client. */
  sharesOf(client: LimitedClient): ClientShares
}

/** Gives back what `take` counted. Idempotent, and usable by `using`. */
export interface Held extends Disposable {
  release(): void
}

/** The message for a client whose share is used up: the cause, the cure and the key. */
const REFUSALS = {
  turnsWaiting: (max) => `${max} of your turns are waiting (turns_waiting of [limits]): repeat the request when one of them has begun`,
  waitingBytes: (max) =>
    `Your waiting turns would contain more than ${megabytes(max)} MB of text (waiting_mb of [limits]): repeat the request when one of them has begun`,
  streams: (max) => `You have ${max} streams open (streams of [limits]): close one of them first`,
  downloads: (max) => `You are downloading ${max} files (downloads of [limits]): repeat the request when one of them has ended`,
  attachmentBytes: (max) =>
    `Your attachments would take more than ${megabytes(max)} MB (attachments_mb of [limits]): delete a conversation that names some of them`,
} satisfies Partial<Record<keyof ClientShares, (max: number) => string>>

/** A share that refuses what exceeds it. */
export type ShareName = keyof typeof REFUSALS

const RETRY_AFTER_SECS = 5

const megabytes = (bytes: number): number => Math.round(bytes / 1024 / 1024)

export class Shares {
  readonly #sharesOf: SharesDeps['sharesOf']
  /** What each client holds of each share; a client that holds nothing is in no map. */
  readonly #held: Record<ShareName, Map<string, number>> = {
    turnsWaiting: new Map(),
    waitingBytes: new Map(),
    streams: new Map(),
    downloads: new Map(),
    attachmentBytes: new Map(),
  }

  constructor({ sharesOf }: SharesDeps) {
    this.#sharesOf = sharesOf
  }

  of(client: LimitedClient): ClientShares {
    return this.#sharesOf(client)
  }

  heldBy({ client }: LimitedClient, share: ShareName): number {
    return this.#held[share].get(client) ?? 0
  }

  /** Counts an amount until it is released. Throws `share_used` when the client would hold more than its share. */
  take(client: LimitedClient, share: ShareName, amount = 1): Held {
    const held = this.#held[share]
    this.check(client, share, (held.get(client.client) ?? 0) + amount)
    return hold(held, client.client, amount)
  }

  /** Throws `share_used` when the amount, which may be counted elsewhere, is more than the share of the client. */
  check(client: LimitedClient, share: ShareName, amount: number): void {
    const max = this.#sharesOf(client)[share]
    if (amount > max) throw new AppError('share_used', REFUSALS[share](max), { retryAfterSecs: RETRY_AFTER_SECS })
  }
}

function hold(held: Map<string, number>, client: string, amount: number): Held {
  let isHeld = true
  held.set(client, (held.get(client) ?? 0) + amount)
  const release = (): void => {
    if (!isHeld) return
    isHeld = false
    const left = (held.get(client) ?? 0) - amount
    if (left > 0) held.set(client, left)
    else held.delete(client)
  }
  return { release, [Symbol.dispose]: release }
}
