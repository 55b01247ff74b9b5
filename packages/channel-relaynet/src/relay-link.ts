/** One connection to a relay (https://github.com/nostr-protocol/nips/blob/master/01.md), with authentication by NIP-42. */
import type { LookupFunction } from 'node:net'
import { endsWithin, signalScope } from '@sluice/kit'
import { list, parsedOrUndefined, text } from '@sluice/kit/foreign-json'
import { AppError, type Clock, errorText } from '@sluice/sdk'
import type { RawData, WebSocket } from 'ws'
import type { SignedEvent } from './event.ts'
import type { Identity } from './identity.ts'
import { refusal } from './refusal.ts'

export interface Filter {
  readonly kinds: readonly number[]
  readonly authors?: readonly string[]
  readonly '#p'?: readonly string[]
  readonly since?: number
  readonly until?: number
  readonly limit?: number
}

export interface LinkOptions {
  readonly clock: Clock
  /** Signs the authentication. */
  readonly identity: Identity
  /** True: the challenge of the relay is answered at once. Otherwise only when the relay refuses something without it. */
  readonly isOwn: boolean
  readonly lookup?: LookupFunction
  /** Closes the connection. */
  readonly signal: AbortSignal
}

/** The messages of a relay for one request. */
export interface Subscription {
  onEvent(event: unknown): void
  /** The relay has sent all stored events; called again after each authentication. */
  onStored(): void
  /** The relay ended the subscription. */
  onClosed(error: AppError): void
}

interface Open {
  readonly filter: Filter
  readonly subscription: Subscription
  /** The id of its last request: answers to earlier ones are ignored. */
  id: string
}

interface Publication {
  readonly event: SignedEvent
  readonly outcome: PromiseWithResolvers<void>
  hasAuthenticated: boolean
}

const OPEN_MS = 10_000
const ANSWER_MS = 10_000
/** A relay that wants authentication may send its challenge after the refusal. */
const CHALLENGE_MS = 5000
const PING_MS = 30_000
const SILENCE_MS = 75_000
const CLOSE_MS = 1000
/** The largest message of a relay: an event of 65,535 bytes of text, encrypted twice, has about 120,000 bytes. */
const FRAME_BYTES_MAX = 512 * 1024
const PUBLICATIONS_MAX = 1000
/** The most events of one answer. Relays send at most some hundreds. */
const STORED_MAX = 10_000
const AUTH_KIND = 22_242

export class RelayLink {
  readonly url: string
  readonly #socket: WebSocket
  readonly #options: LinkOptions
  readonly #name: string
  readonly #subscriptions = new Set<Open>()
  readonly #publications = new Map<string, Publication>()
  readonly #closed = Promise.withResolvers<AppError>()
  readonly #over = new AbortController()
  #challenge: string | undefined
  /** Resolves when the relay has sent a challenge. */
  readonly #challenged = Promise.withResolvers<void>()
  #isAuthenticated = false
  /** The authentication that is under way or has succeeded. */
  #authentication: Promise<void> | undefined
  #requests = 0
  #lastFrameAtMs: number
  #reason = ''

  private constructor(url: string, socket: WebSocket, options: LinkOptions) {
    this.url = url
    this.#name = shownUrl(url)
    this.#socket = socket
    this.#options = options
    this.#lastFrameAtMs = options.clock.monotonicMs()
    this.#observe()
  }

  /** Connects. Throws `unavailable`, or `aborted` when the signal aborts. */
  static async open(url: string, options: LinkOptions): Promise<RelayLink> {
    const { WebSocket: Socket } = await import('ws')
    if (options.signal.aborted) throw new AppError('aborted', 'The connection is not needed any more')
    const { lookup } = options
    const socket = new Socket(url, {
      handshakeTimeout: OPEN_MS,
      maxPayload: FRAME_BYTES_MAX,
      perMessageDeflate: false,
      followRedirects: false,
      ...(lookup && { lookup }),
    })
    const link = new RelayLink(url, socket, options)
    const opened = Promise.withResolvers<void>()
    socket.once('open', opened.resolve)
    const error = await Promise.race([opened.promise, link.closed])
    if (error) throw error
    void link.#keepAlive()
    return link
  }

  /** Resolves with the reason when the connection has ended. */
  get closed(): Promise<AppError> {
    return this.#closed.promise
  }

  get isOpen(): boolean {
    return this.#socket.readyState === this.#socket.OPEN
  }

  /** Stops reading until `resume`. */
  pause(): void {
    this.#socket.pause()
  }

  resume(): void {
    this.#lastFrameAtMs = this.#options.clock.monotonicMs()
    this.#socket.resume()
  }

  /** Closes the connection. Idempotent. */
  close(reason = 'It is not needed any more'): void {
    this.#reason ||= reason
    this.#socket.resume()
    this.#socket.close(1000)
    void this.#options.clock.sleep(CLOSE_MS, this.#over.signal).then(() => this.#socket.terminate())
  }

  /** Asks for events until the returned function is called. */
  subscribe(filter: Filter, subscription: Subscription): () => void {
    const open: Open = { filter, subscription, id: '' }
    this.#subscriptions.add(open)
    this.#request(open)
    return () => {
      if (this.#subscriptions.delete(open)) this.#send(['CLOSE', open.id])
    }
  }

  /** Returns the stored events that match. Throws as `publish` does. */
  async stored(filter: Filter, signal: AbortSignal): Promise<unknown[]> {
    using limit = signalScope([signal, this.#over.signal], ANSWER_MS, this.#options.clock)
    const events: unknown[] = []
    const done = Promise.withResolvers<void>()
    const late = () => done.reject(this.#noAnswer(signal))
    limit.signal.addEventListener('abort', late, { once: true })
    if (limit.signal.aborted) late()
    const end = this.subscribe(filter, {
      onEvent: (event) => {
        if (events.push(event) > STORED_MAX) done.reject(new AppError('unavailable', `${this.#name} sends more than ${STORED_MAX} events`))
      },
      onStored: done.resolve,
      onClosed: done.reject,
    })
    try {
      await done.promise
      return events
    } finally {
      limit.signal.removeEventListener('abort', late)
      end()
    }
  }

  /**
   * Resolves once the relay has accepted the event. Throws `rate_limited`, `forbidden` or `invalid_request` as the relay says,
   * `unavailable` when it does not answer, and `aborted`.
   */
  async publish(event: SignedEvent, signal: AbortSignal): Promise<void> {
    if (!this.isOpen) throw new AppError('unavailable', `${this.#name} is not connected`)
    if (this.#publications.size >= PUBLICATIONS_MAX) throw new AppError('unavailable', `Too many messages wait for ${this.#name}`)
    using limit = signalScope([signal, this.#over.signal], ANSWER_MS, this.#options.clock)
    const outcome = Promise.withResolvers<void>()
    const publication: Publication = { event, outcome, hasAuthenticated: false }
    const late = () => outcome.reject(this.#noAnswer(signal))
    limit.signal.addEventListener('abort', late, { once: true })
    this.#publications.set(event.id, publication)
    this.#send(['EVENT', event])
    try {
      await outcome.promise
    } finally {
      limit.signal.removeEventListener('abort', late)
      if (this.#publications.get(event.id) === publication) this.#publications.delete(event.id)
    }
  }

  #noAnswer(signal: AbortSignal): AppError {
    if (signal.aborted) return new AppError('aborted', 'The call was aborted')
    return new AppError('unavailable', `${this.#name} ${this.#over.signal.aborted ? 'closed the connection' : 'did not answer'}`)
  }

  #observe(): void {
    const { signal, clock } = this.#options
    const stop = () => this.close()
    const alive = () => {
      this.#lastFrameAtMs = clock.monotonicMs()
    }
    this.#socket.on('message', (data) => {
      alive()
      this.#onFrame(data)
    })
    this.#socket.on('ping', alive).on('pong', alive)
    // The `close` event follows.
    this.#socket.on('error', (error) => {
      this.#reason ||= errorText(error) || String((error as NodeJS.ErrnoException).code)
    })
    this.#socket.once('close', (code, reason) => {
      signal.removeEventListener('abort', stop)
      const why = this.#reason || String(reason).slice(0, 200) || `code ${code}`
      this.#over.abort()
      this.#closed.resolve(new AppError('unavailable', `The connection to ${this.#name} ended: ${why}`))
    })
    signal.addEventListener('abort', stop, { once: true })
  }

  #onFrame(data: RawData): void {
    const [type, first, ...rest] = list(parsedOrUndefined(String(data)))
    switch (type) {
      case 'EVENT':
        return void this.#opened(first)?.subscription.onEvent(rest[0])
      case 'EOSE':
        return void this.#opened(first)?.subscription.onStored()
      case 'CLOSED':
        return void this.#onClosed(text(first), text(rest[0]))
      case 'OK':
        return void this.#onOk(text(first), rest[0] === true, text(rest[1]))
      case 'AUTH':
        return void this.#onChallenge(text(first))
      default:
    }
  }

  #opened(id: unknown): Open | undefined {
    for (const open of this.#subscriptions) if (open.id === id) return open
    return undefined
  }

  #request(open: Open): void {
    this.#requests += 1
    open.id = `s${this.#requests}`
    this.#send(['REQ', open.id, open.filter])
  }

  #onClosed(id: string, reason: string): void {
    const open = this.#opened(id)
    if (!open) return
    const fail = (error: AppError): void => {
      if (this.#subscriptions.delete(open)) open.subscription.onClosed(error)
    }
    if (!this.#wantsAuthentication(reason)) return void fail(refusal(this.#name, reason))
    this.#authenticate(reason).then(
      // The first authentication has requested every subscription again.
      () => void (open.id === id && this.#request(open)),
      fail,
    )
  }

  #onOk(id: string, isAccepted: boolean, reason: string): void {
    const publication = this.#publications.get(id)
    if (!publication) return
    const { event, outcome, hasAuthenticated } = publication
    if (isAccepted || reason.startsWith('duplicate:')) return void outcome.resolve()
    if (hasAuthenticated || !this.#wantsAuthentication(reason)) return void outcome.reject(refusal(this.#name, reason))
    publication.hasAuthenticated = true
    this.#authenticate(reason).then(() => this.#send(['EVENT', event]), outcome.reject)
  }

  #onChallenge(challenge: string): void {
    if (challenge === '' || challenge === this.#challenge) return
    this.#challenge = challenge
    this.#authentication = undefined
    this.#isAuthenticated = false
    this.#challenged.resolve()
    if (this.#options.isOwn) this.#authenticate('').catch(() => undefined)
  }

  /** Some relays say `restricted` to every client that they do not know yet. */
  #wantsAuthentication(reason: string): boolean {
    return reason.startsWith('auth-required:') || (reason.startsWith('restricted:') && !this.#isAuthenticated)
  }

  /**
   * Authenticates once, and then requests all subscriptions again: many relays hide private messages until then. Throws the refusal
   * with `reason` when the relay sends no challenge.
   */
  async #authenticate(reason: string): Promise<void> {
    const { clock } = this.#options
    if (this.#challenge === undefined) await endsWithin(this.#challenged.promise, CHALLENGE_MS, clock, this.#over.signal)
    const challenge = this.#challenge
    if (challenge === undefined) throw refusal(this.#name, reason)
    this.#authentication ??= this.#answer(challenge)
    return this.#authentication
  }

  async #answer(challenge: string): Promise<void> {
    const { identity, clock } = this.#options
    const tags = [
      ['relay', this.url],
      ['challenge', challenge],
    ]
    const event = identity.sign({ kind: AUTH_KIND, created_at: Math.floor(clock.nowMs() / 1000), tags, content: '' })
    using limit = signalScope([this.#over.signal], ANSWER_MS, clock)
    const outcome = Promise.withResolvers<void>()
    const late = () => outcome.reject(this.#noAnswer(limit.signal))
    limit.signal.addEventListener('abort', late, { once: true })
    this.#publications.set(event.id, { event, outcome, hasAuthenticated: true })
    this.#send(['AUTH', event])
    try {
      await outcome.promise
    } catch (error) {
      if (error instanceof AppError && error.code === 'aborted') throw new AppError('unavailable', `${this.#name} did not authenticate`)
      throw new AppError('forbidden', `${this.#name} refused the authentication of the bot: ${errorText(error)}`)
    } finally {
      limit.signal.removeEventListener('abort', late)
      this.#publications.delete(event.id)
    }
    this.#isAuthenticated = true
    for (const open of this.#subscriptions) {
      this.#send(['CLOSE', open.id])
      this.#request(open)
    }
  }

  #send(message: readonly unknown[]): void {
    if (this.isOpen) this.#socket.send(JSON.stringify(message))
  }

  /** Sends pings, and terminates a connection whose other end disappeared without closing it. */
  async #keepAlive(): Promise<void> {
    const { clock } = this.#options
    const { signal } = this.#over
    while (!signal.aborted) {
      await clock.sleep(PING_MS, signal)
      if (signal.aborted) return
      if (this.#socket.isPaused) continue
      if (clock.monotonicMs() - this.#lastFrameAtMs > SILENCE_MS) {
        this.#reason ||= `it was silent for ${SILENCE_MS / 1000} s`
        return void this.#socket.terminate()
      }
      this.#socket.ping()
    }
  }
}

/** Returns the URL without the query, which may hold a credential. */
export const shownUrl = (url: string): string => url.replace(/\?.*$/s, '')
