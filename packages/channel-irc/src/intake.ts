/** Delivers messages one after another. They wait here while the store fails, because most servers never send a message again. */
import { type Cursors, storePatiently } from '@sluice/kit'
import type { Deliver, Host, Inbound } from '@sluice/sdk'

interface Waiting {
  readonly inbound: Inbound
  readonly atMs: number
  /** Resolves when the message is durable, or dropped because the channel stopped. */
  readonly done: () => void
}

/** The connection is not read while so many messages wait. */
const WAITING_MAX = 1000
const HELD_MAX = 10_000

export class Intake {
  readonly #host: Host
  readonly #cursors: Cursors
  readonly #scope: string
  readonly #deliver: Deliver
  readonly #signal: AbortSignal
  readonly #waiting: Waiting[] = []
  /** New messages that wait until earlier ones were read; undefined while they need not. */
  #held: Waiting[] | undefined
  #running: Promise<void> | undefined

  /** `scope` is the name of the position in the cursors; `signal` aborts when the channel stops. */
  constructor(host: Host, cursors: Cursors, scope: string, deliver: Deliver, signal: AbortSignal) {
    this.#host = host
    this.#cursors = cursors
    this.#scope = scope
    this.#deliver = deliver
    this.#signal = signal
  }

  get isFull(): boolean {
    return this.#waiting.length >= WAITING_MAX
  }

  /** Whether so many new messages are held that reading the missed ones has to begin again. */
  get isOverfull(): boolean {
    return (this.#held?.length ?? 0) >= HELD_MAX
  }

  /** Keeps new messages back until `release`, so that missed ones come first. Messages that are held already stay. */
  hold(): void {
    this.#held ??= []
  }

  release(): void {
    const held = this.#held ?? []
    this.#held = undefined
    for (const waiting of held) this.#queue(waiting)
  }

  /** Takes a new message that the server got at `atMs`. Resolves when it is durable. */
  takeNew(inbound: Inbound, atMs: number): Promise<void> {
    if (!this.#held) return this.take(inbound, atMs)
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#held.push({ inbound, atMs, done: resolve })
    return promise
  }

  /** Takes a message ahead of the held ones. Resolves when it is durable. */
  take(inbound: Inbound, atMs: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#queue({ inbound, atMs, done: resolve })
    return promise
  }

  /** Records that every message up to `atMs` has arrived. */
  seen(atMs: number): void {
    if (!this.#running && !this.#held && !this.#signal.aborted) this.#cursors.advance(this.#scope, String(atMs))
  }

  /** Resolves when no message waits. */
  async settled(): Promise<void> {
    await this.#running
  }

  #queue(waiting: Waiting): void {
    this.#waiting.push(waiting)
    this.#running ??= this.#run()
  }

  async #run(): Promise<void> {
    const delivery = { channel: 'irc', deliver: this.#deliver, signal: this.#signal }
    for (let next = this.#waiting[0]; next; next = this.#waiting[0]) {
      const isStored = await storePatiently(this.#host, { ...delivery, inbound: next.inbound })
      this.#waiting.shift()
      if (isStored) this.#cursors.advance(this.#scope, String(next.atMs))
      next.done()
      // The position stays before the messages that are dropped now.
      if (!isStored) for (const { done } of this.#waiting.splice(0)) done()
    }
    this.#running = undefined
  }
}
