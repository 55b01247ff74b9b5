/**
 * The last event that is durable, kept across restarts. signal-cli repeats the events after it to a client that sends its id, and all
 * that it keeps to a client that sends an id which it does not know; see `Last-Event-ID` in its manual page signal-cli-jsonrpc(5).
 */
import { members } from '@sluice/kit/foreign-json'
import type { Gap, KeyValue, ListenCursors } from '@sluice/sdk'

const KEY = 'event'
/** Known to no signal-cli: asks for everything that it keeps. */
const NONE = 'none'
/** Matches an id that a header may contain. */
const ID = /^[\x21-\x7e]{1,200}$/
/** The time of the last sign of life need not be exact. */
const STORE_EVERY_MS = 60_000

interface State {
  /** The id of the last durable event; absent before the first connection. */
  readonly id?: string
  /** The last sign of life of a signal-cli whose events have no ids; absent for one that repeats events, and after an orderly end. */
  readonly aliveAtMs?: number
}

export class EventCursor implements ListenCursors {
  readonly #keyValue: KeyValue
  #state: State = {}
  #stored: State = {}

  constructor(keyValue: KeyValue) {
    this.#keyValue = keyValue
  }

  async load(): Promise<void> {
    const { id, aliveAtMs } = members(await this.#keyValue.get(KEY))
    this.#stored = {
      ...(typeof id === 'string' && ID.test(id) && { id }),
      ...(typeof aliveAtMs === 'number' && Number.isFinite(aliveAtMs) && { aliveAtMs }),
    }
    this.#state = { ...this.#stored, ...this.#state }
  }

  async flush(): Promise<void> {
    const [state, stored] = [this.#state, this.#stored]
    const isFresh = Math.abs((state.aliveAtMs ?? 0) - (stored.aliveAtMs ?? 0)) < STORE_EVERY_MS
    if (state.id === stored.id && isFresh) return
    await this.#keyValue.set(KEY, { ...state })
    this.#stored = state
  }

  /** The id to send. Absent for the first connection of all, which takes nothing that came before it. */
  get lastId(): string | undefined {
    return this.#state.id
  }

  /** Records a connection. Returns the gap before it, if signal-cli repeats nothing. */
  async connected(): Promise<Gap | undefined> {
    const { id = NONE, aliveAtMs } = this.#state
    const isFirst = this.#state.id === undefined
    this.#state = { id }
    // What arrives from now on is repeated even if the process is killed before the first event is durable.
    if (isFirst) await this.flush()
    if (aliveAtMs === undefined) return undefined
    return { sinceMs: aliveAtMs, why: 'this version of signal-cli does not repeat what it wrote to a broken connection' }
  }

  /** Records that an event is durable. */
  took(id: string | undefined, nowMs: number): void {
    this.#state = id !== undefined && ID.test(id) ? { id } : { id: NONE, aliveAtMs: nowMs }
  }

  /** Records a sign of life. */
  heard(nowMs: number): void {
    if (this.#state.aliveAtMs !== undefined) this.#state = { ...this.#state, aliveAtMs: nowMs }
  }

  /** Records that the connection ends because the daemon stops. */
  left(): void {
    const { id } = this.#state
    this.#state = id === undefined ? {} : { id }
  }
}
