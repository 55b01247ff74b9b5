/** The calls that go on, which are stored, so that they go on after a restart of the daemon. */
import { members, text, textAt } from '@sluice/kit/foreign-json'
import type { Address, Clock, KeyValue } from '@sluice/sdk'
import type { MediaSession } from './media-session.ts'
import { callerOf, type Parties } from './telephony.ts'

export const KEPT_MAX = 1000

export interface LiveCall {
  readonly parties: Parties
  readonly startedAtMs: number
  session?: MediaSession
  /** When the media stream last carried speech, in either direction. */
  activeAtMs: number
  silences: number
  utterances: number
  /** How many media streams were connected: each has a token of its own. */
  streams: number
  /** The provider was asked to connect the media stream again, and has not done so. */
  isReconnecting?: true
  /** The call is over if the provider reports nothing until then. */
  expectedByMs?: number
  /** When the provider was asked to end the call. */
  endingAtMs?: number
  /** The words that the call begins with, until they are spoken. */
  firstWords?: string
}

export class LiveCalls {
  readonly #keyValue: KeyValue
  readonly #clock: Clock
  readonly #live = new Map<string, LiveCall>()

  constructor({ keyValue, clock }: { readonly keyValue: KeyValue; readonly clock: Clock }) {
    this.#keyValue = keyValue
    this.#clock = clock
  }

  get size(): number {
    return this.#live.size
  }

  has(call: string): boolean {
    return this.#live.has(call)
  }

  get(call: string): LiveCall | undefined {
    return this.#live.get(call)
  }

  all(): readonly LiveCall[] {
    return [...this.#live.values()]
  }

  /** Reads the calls that went on when the daemon ended. */
  async restore(): Promise<readonly LiveCall[]> {
    const restored: LiveCall[] = []
    for (const { key, value } of await this.#keyValue.list('call/', KEPT_MAX)) {
      const parties = partiesIn(key.slice('call/'.length), value)
      const { startedAtMs, streams } = members(value)
      if (!parties || typeof startedAtMs !== 'number') await this.#keyValue.delete(key)
      else {
        const call = this.add(parties, startedAtMs)
        call.streams = typeof streams === 'number' ? streams : 0
        if (textAt(value, 'firstWords') !== '') call.firstWords = textAt(value, 'firstWords')
        restored.push(call)
      }
    }
    return restored
  }

  add(parties: Parties, startedAtMs: number): LiveCall {
    const live: LiveCall = { parties, startedAtMs, activeAtMs: this.#clock.nowMs(), silences: 0, utterances: 0, streams: 0 }
    this.#live.set(parties.call, live)
    return live
  }

  async store({ parties: { call, ...about }, startedAtMs, streams, firstWords }: LiveCall): Promise<void> {
    await this.#keyValue.set(`call/${call}`, { ...about, startedAtMs, streams, ...(firstWords !== undefined && { firstWords }) })
  }

  /** Returns the words that a call begins with, once; undefined in a call that goes on. */
  async firstWords(call: LiveCall): Promise<string | undefined> {
    const { firstWords } = call
    if (firstWords === undefined) return undefined
    delete call.firstWords
    await this.store(call)
    return firstWords
  }

  /** Removes a call that has ended. Returns undefined when it had ended before. Calls `stored` before the call leaves the store. */
  async delete(id: string, stored: (call: LiveCall) => Promise<void>): Promise<LiveCall | undefined> {
    const call = this.#live.get(id)
    if (!call) return undefined
    this.#live.delete(id)
    call.session?.end()
    await stored(call)
    await this.#keyValue.delete(`call/${id}`)
    return call
  }

  /** Returns the call that an address names, or the newest one with its number. */
  at({ to, more }: Address): LiveCall | undefined {
    if (more?.call !== undefined) return this.#live.get(more.call)
    return this.all().findLast(({ parties }) => callerOf(parties.remote) === to)
  }

  /** How long the calls have gone on, all together. */
  runningSecs(): number {
    const nowMs = this.#clock.nowMs()
    return this.all().reduce((sum, { startedAtMs }) => sum + (nowMs - startedAtMs) / 1000, 0)
  }
}

function partiesIn(call: string, stored: unknown): Parties | undefined {
  const { remote, local, direction } = members(stored)
  if (text(remote) === '' || text(local) === '') return undefined
  return { call, remote: text(remote), local: text(local), direction: direction === 'outbound' ? 'outbound' : 'inbound' }
}
