/** One connection of a client to the fake relay, by NIP-01 and NIP-42. */
import { randomUUID } from 'node:crypto'
import { type Filter, matchFilter } from 'nostr-tools/filter'
import { type Event, verifyEvent } from 'nostr-tools/pure'
import type { WebSocket } from 'ws'

/** The parts of a relay that its connections need. */
export interface RelayState {
  readonly events: readonly Event[]
  /**
   * `required`: nothing works without authentication. `late`: so, but the challenge follows the first refusal, and the reason is
   * `restricted`. `hidden`: private messages are shown only to their recipients.
   */
  readonly auth: 'none' | 'required' | 'late' | 'hidden'
  /** The public keys that may authenticate. */
  mayEnter(pubkey: string): boolean
  /** Called when a client has authenticated. */
  onEntered(pubkey: string): void
  /** Returns why the event is refused; undefined when it is stored, `hang` for no answer, and `cut` to break the connection. */
  accept(event: Event): string | undefined
  /** The most events of one request. */
  readonly limit: number
  /** Each event is sent so many times. */
  readonly copies: number
}

const AUTH_KIND = 22_242
const PRIVATE = [4, 1059]

export class FakeRelayClient {
  readonly #socket: WebSocket
  readonly #state: RelayState
  readonly #url: string
  readonly #challenge = randomUUID()
  readonly #filters = new Map<string, readonly Filter[]>()
  #pubkey: string | undefined
  #isMuted = false

  constructor(socket: WebSocket, state: RelayState, url: string) {
    this.#socket = socket
    this.#state = state
    this.#url = url
    socket.on('message', (data) => {
      if (!this.#isMuted) this.#onMessage(JSON.parse(String(data)))
    })
    socket.on('ping', (data) => {
      if (!this.#isMuted) socket.pong(data)
    })
    if (state.auth !== 'none' && state.auth !== 'late') this.send(['AUTH', this.#challenge])
  }

  get subscriptions(): number {
    return this.#filters.size
  }

  send(message: readonly unknown[]): void {
    if (!this.#isMuted) this.#socket.send(JSON.stringify(message))
  }

  mute(): void {
    this.#isMuted = true
  }

  cut(): void {
    this.#socket.terminate()
  }

  /** Ends all subscriptions with a reason. */
  endSubscriptions(reason: string): void {
    for (const id of this.#filters.keys()) this.send(['CLOSED', id, reason])
    this.#filters.clear()
  }

  /** Sends an event to the subscriptions that it matches. */
  show(event: Event): void {
    for (const [id, filters] of this.#filters)
      if (filters.some((filter) => matchFilter(filter, event)) && this.#maySee(event)) this.#sendEvent(id, event)
  }

  #sendEvent(id: string, event: Event): void {
    for (let copy = 0; copy < this.#state.copies; copy += 1) this.send(['EVENT', id, event])
  }

  #maySee({ kind, tags }: Event): boolean {
    const isPrivate = PRIVATE.includes(kind) && this.#state.auth !== 'none'
    return !isPrivate || tags.some(([name, value]) => name === 'p' && value === this.#pubkey)
  }

  #onMessage([type, first, ...rest]: unknown[]): void {
    const isShut = ['required', 'late'].includes(this.#state.auth) && this.#pubkey === undefined
    if (type === 'AUTH') return void this.#onAuth(first as Event)
    if (type === 'CLOSE') return void this.#filters.delete(String(first))
    if (type === 'REQ') {
      if (isShut) return void this.#shut(['CLOSED', first])
      return void this.#onRequest(String(first), rest as Filter[])
    }
    if (type !== 'EVENT') return void this.send(['NOTICE', `unknown message ${String(type)}`])
    const event = first as Event
    if (isShut) return void this.#shut(['OK', event.id, false])
    if (!verifyEvent(event)) return void this.send(['OK', event.id, false, 'invalid: wrong id or signature'])
    const isKnown = this.#state.events.some(({ id }) => id === event.id)
    const refusal = this.#state.accept(event)
    if (refusal === 'hang') return
    if (refusal === 'cut') return void this.cut()
    this.send(['OK', event.id, refusal === undefined, refusal ?? (isKnown ? 'duplicate: already have this event' : '')])
  }

  #shut(answer: readonly unknown[]): void {
    const isLate = this.#state.auth === 'late'
    this.send([...answer, isLate ? 'restricted: only for members' : 'auth-required: authentication is needed'])
    if (isLate) this.send(['AUTH', this.#challenge])
  }

  #onAuth(event: Event): void {
    const { pathname, host } = new URL(event.tags.find(([name]) => name === 'relay')?.[1] ?? 'ws://none')
    const here = new URL(this.#url)
    const isRight =
      verifyEvent(event) &&
      event.kind === AUTH_KIND &&
      event.tags.some(([name, value]) => name === 'challenge' && value === this.#challenge) &&
      pathname === here.pathname &&
      host === here.host
    if (!isRight) return void this.send(['OK', event.id, false, 'invalid: wrong authentication'])
    if (!this.#state.mayEnter(event.pubkey)) return void this.send(['OK', event.id, false, 'restricted: not on the list of members'])
    this.#pubkey = event.pubkey
    this.#state.onEntered(event.pubkey)
    this.send(['OK', event.id, true, ''])
  }

  #onRequest(id: string, filters: readonly Filter[]): void {
    this.#filters.set(id, filters)
    const found = new Map<string, Event>()
    for (const filter of filters) {
      const matching = this.#state.events.filter((event) => matchFilter(filter, event) && this.#maySee(event))
      const newest = matching.toSorted((a, b) => b.created_at - a.created_at)
      for (const event of newest.slice(0, Math.min(filter.limit ?? this.#state.limit, this.#state.limit))) found.set(event.id, event)
    }
    for (const event of found.values()) this.#sendEvent(id, event)
    this.send(['EOSE', id])
  }
}
