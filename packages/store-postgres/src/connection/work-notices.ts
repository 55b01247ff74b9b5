/**
 * Tells the owner of a shard at once about work that this process has stored for it. A notice may be lost: each process also looks for
 * such work once a second.
 */
import type { StoreChange } from '@sluice/sdk'

/** Work that is stored within this time shares a notice. */
const GATHER_MS = 5
/** A payload of a notice is smaller than 8,000 bytes. Beyond this number of messages, it names only their shards. */
const MESSAGES_MAX = 400

/** The content of one notice. */
export interface WorkNotice {
  readonly what: 'work'
  readonly shards: readonly number[]
  /** The numbers of the messages; absent when other work was stored, too. */
  readonly messages?: readonly number[]
}

export interface WorkNoticesOptions {
  /** Whether this process owns the shard, and so knows of the work already. */
  owns(shard: number): boolean
  /** Sends a notice to all processes. Never rejects. */
  send(notice: WorkNotice): Promise<void>
}

export class WorkNotices {
  readonly #options: WorkNoticesOptions
  readonly #shards = new Set<number>()
  #messages: number[] | undefined = []
  #timer: NodeJS.Timeout | undefined

  constructor(options: WorkNoticesOptions) {
    this.#options = options
  }

  /** Reports a message that was stored; without its number, other work. */
  stored(shard: number, number?: number): void {
    if (this.#options.owns(shard)) return
    this.#shards.add(shard)
    if (number === undefined || this.#messages?.length === MESSAGES_MAX) this.#messages = undefined
    else this.#messages?.push(number)
    this.#timer ??= setTimeout(() => this.#send(), GATHER_MS).unref()
  }

  close(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#shards.clear()
  }

  #send(): void {
    const shards = [...this.#shards]
    const messages = this.#messages && { messages: this.#messages }
    this.#timer = undefined
    this.#shards.clear()
    this.#messages = []
    void this.#options.send({ what: 'work', shards, ...messages })
  }
}

/** Returns the change that a notice reports, for the shards that the reader owns; undefined when it owns none of them. */
export function changeOf({ shards, messages }: WorkNotice, owns: (shard: number) => boolean): StoreChange | undefined {
  const among = new Set(shards.filter(owns))
  if (among.size === 0) return undefined
  return { shards: { from: Math.min(...among), to: Math.max(...among) }, among, ...(messages && { messages }) }
}
