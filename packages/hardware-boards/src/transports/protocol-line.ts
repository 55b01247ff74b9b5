/**
 * The line of a board that speaks the line protocol. It is opened by the first call, closed when idle, and reopened when it
 * was lost.
 */

import { SerialQueue, signalScope } from '@sluice/kit'
import { AppError, type Clock } from '@sluice/sdk'
import type { Port } from '../devices.ts'
import { bitOf, type Capabilities, capabilitiesOf } from '../protocol/answers.ts'
import { Link } from '../protocol/link.ts'
import { type BoardLine, NO_CAPABILITIES, NO_SIGNALS, type Signals } from './board-line.ts'

/** A port that was not used for this long is closed, so that other programs can open it. */
export const IDLE_MS = 30_000
/** The first pause between attempts to listen to a board; it doubles after each one. */
const LISTEN_AGAIN_MS = 5000
const LISTEN_AGAIN_MS_MAX = 60_000
const CALLS_MAX = 64

export interface LineListener {
  /** Called with each signal that the board sends. Must not throw. */
  onSignal(signal: string, value: unknown): void
  /** Called when the board does not accept the watch on a pin. Must not throw. */
  onUnwatched(pin: number, error: unknown): void
}

export class ProtocolLine implements BoardLine {
  readonly #name: string
  readonly #clock: Clock
  readonly #openPort: (signal: AbortSignal) => Promise<Port>
  readonly #listener: LineListener
  readonly #queue: SerialQueue
  readonly #closing = new AbortController()
  #link: Link | undefined
  #capabilities: Capabilities | undefined
  #usedAtMs = 0
  #openedAtMs = 0
  #wanted: Signals = NO_SIGNALS
  /** The pins whose watch was requested over the current link, refused ones included. */
  #watched = new Set<number>()
  #isListening = false

  /** `name` is the alias of the board, for messages. `openPort` throws `unavailable` when the port cannot be opened. */
  constructor(name: string, clock: Clock, openPort: (signal: AbortSignal) => Promise<Port>, listener: LineListener) {
    this.#name = name
    this.#clock = clock
    this.#openPort = openPort
    this.#listener = listener
    this.#queue = new SerialQueue({ name, tasksMax: CALLS_MAX })
  }

  async capabilities(signal: AbortSignal): Promise<Capabilities> {
    // The common case by far, because every call looks its pin up.
    if (this.#capabilities && this.#isOpen) return this.#capabilities
    return this.#queue.run(() => this.#fetchCapabilities(signal), signal)
  }

  read(pin: number, signal: AbortSignal): Promise<0 | 1> {
    return this.#queue.run(async () => bitOf(this.#name, await this.#request('gpio_read', { pin }, true, signal)), signal)
  }

  write(pin: number, value: 0 | 1, signal: AbortSignal): Promise<void> {
    return this.#queue.run(async () => void (await this.#request('gpio_write', { pin, value }, false, signal)), signal)
  }

  withPort<Result>(signal: AbortSignal, work: (port: Port) => Promise<Result>): Promise<Result> {
    return this.#queue.run(async () => {
      await this.drop()
      try {
        const port = await this.#openUnlessClosing(signal)
        try {
          return await work(port)
        } finally {
          await port.close()
        }
      } finally {
        void this.#keepListening()
      }
    }, signal)
  }

  listen(wanted: Signals): void {
    this.#wanted = wanted
    void this.#keepListening()
  }

  async drop(): Promise<void> {
    this.#capabilities = undefined
    const before = this.#link
    this.#link = undefined
    await before?.close()
  }

  async close(): Promise<void> {
    this.#closing.abort()
    this.#wanted = NO_SIGNALS
    await this.drop()
  }

  get #isOpen(): boolean {
    return this.#link !== undefined && !this.#link.isClosed
  }

  async #openUnlessClosing(signal: AbortSignal): Promise<Port> {
    using either = signalScope([signal, this.#closing.signal])
    return await this.#openPort(either.signal)
  }

  /** Returns the open link, after opening the port if necessary. */
  async #opened(signal: AbortSignal): Promise<Link> {
    this.#usedAtMs = this.#clock.monotonicMs()
    if (this.#link && !this.#link.isClosed) return this.#link
    if (this.#closing.signal.aborted) throw new AppError('unavailable', `${this.#name} is no longer in use`)
    const port = await this.#openUnlessClosing(signal)
    this.#capabilities = undefined
    this.#watched = new Set()
    this.#openedAtMs = this.#clock.monotonicMs()
    const { onSignal } = this.#listener
    const link = new Link(port, this.#name, this.#clock, { onSignal, onClose: () => void this.#keepListening() })
    this.#link = link
    void this.#closeWhenIdle(link)
    void this.#keepListening()
    return link
  }

  get #isIdle(): boolean {
    return this.#wanted.size === 0 && this.#clock.monotonicMs() - this.#usedAtMs >= IDLE_MS
  }

  async #closeWhenIdle(link: Link): Promise<void> {
    const { signal } = this.#closing
    while (!link.isClosed && !signal.aborted) {
      const leftMs = this.#usedAtMs + IDLE_MS - this.#clock.monotonicMs()
      await this.#clock.sleep(leftMs > 0 ? leftMs : IDLE_MS, signal)
      // A call that is already in the queue runs first, and makes the line busy again.
      if (this.#isIdle) await this.#queue.run(async () => (this.#isIdle ? link.close() : undefined), signal).catch(() => undefined)
    }
  }

  /** Opens the line and makes the board watch the wanted pins, in the background, until both has succeeded. */
  async #keepListening(): Promise<void> {
    if (this.#isListening || this.#isUpToDate) return
    this.#isListening = true
    const { signal } = this.#closing
    // Without this pause, a port that is lost as soon as it opens would be reopened in a tight loop.
    if (this.#link?.isClosed && this.#clock.monotonicMs() - this.#openedAtMs < LISTEN_AGAIN_MS)
      await this.#clock.sleep(LISTEN_AGAIN_MS, signal)
    for (let pauseMs = LISTEN_AGAIN_MS; !this.#isUpToDate && !signal.aborted; pauseMs = Math.min(2 * pauseMs, LISTEN_AGAIN_MS_MAX)) {
      await this.#queue.run(() => this.#updateWatches(), signal).catch(() => undefined)
      if (!this.#isUpToDate) await this.#clock.sleep(pauseMs, signal)
    }
    this.#isListening = false
  }

  /** True when the line is open and the board watches the wanted pins, or when it is closed and no signal is wanted. */
  get #isUpToDate(): boolean {
    const { add, remove } = this.#watchChanges()
    return this.#isOpen ? add.length + remove.length === 0 : this.#wanted.size === 0
  }

  #watchChanges(): { readonly add: readonly number[]; readonly remove: readonly number[] } {
    const pins = new Set([...this.#wanted].flatMap(pinIn))
    return { add: [...pins].filter((pin) => !this.#watched.has(pin)), remove: [...this.#watched].filter((pin) => !pins.has(pin)) }
  }

  async #updateWatches(): Promise<void> {
    if (this.#isUpToDate) return
    const link = await this.#opened(this.#closing.signal)
    const { add, remove } = this.#watchChanges()
    for (const pin of remove) await this.#setWatch(link, 'unwatch', pin)
    for (const pin of add) await this.#setWatch(link, 'watch', pin)
  }

  async #setWatch(link: Link, command: 'watch' | 'unwatch', pin: number): Promise<void> {
    const { signal } = this.#closing
    try {
      await link.request(command, { pin }, { signal, repeatable: true })
    } catch (error) {
      if (command === 'watch' && !signal.aborted && !link.isClosed) this.#listener.onUnwatched(pin, error)
      // A board that refuses will refuse again; a board that did not answer may answer later.
      if (!(error instanceof AppError) || error.code !== 'upstream') throw error
    }
    if (command === 'watch') this.#watched.add(pin)
    else this.#watched.delete(pin)
  }

  async #fetchCapabilities(signal: AbortSignal): Promise<Capabilities> {
    await this.#opened(signal)
    if (this.#capabilities) return this.#capabilities
    const fetched = await this.#request('capabilities', {}, true, signal).then(
      (result) => capabilitiesOf(this.#name, result),
      (error: unknown) => {
        // Small firmware answers, but does not know this command.
        if (error instanceof AppError && error.code === 'upstream') return NO_CAPABILITIES
        throw error
      },
    )
    this.#capabilities = fetched
    return fetched
  }

  async #request(command: string, args: Readonly<Record<string, unknown>>, repeatable: boolean, signal: AbortSignal): Promise<unknown> {
    const link = await this.#opened(signal)
    try {
      return await link.request(command, args, { signal, repeatable })
    } finally {
      this.#usedAtMs = this.#clock.monotonicMs()
    }
  }
}

/** Returns the pin that a signal such as `pin_4` names, if it names one. */
const pinIn = (signal: string): number[] => (/^pin_\d{1,3}$/.test(signal) ? [Number(signal.slice(4))] : [])
