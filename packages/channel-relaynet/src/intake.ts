/** Verifies and decrypts events one after another, and delivers each message once. */
import { setImmediate } from 'node:timers/promises'
import { BoundedMap, storePatiently } from '@sluice/kit'
import type { Deliver, Host, Inbound } from '@sluice/sdk'
import { readSigned, type SignedEvent, tagValue } from './event.ts'
import { GIFT_WRAP, unwrap } from './gift-wrap.ts'
import type { Identity } from './identity.ts'
import { decryptLegacy, LEGACY_MESSAGE } from './nip04.ts'
import { parseLegacy, parsePrivate } from './parse.ts'
import { FUTURE_SECS_MAX, type Positions } from './positions.ts'
import { shownUrl } from './relay-link.ts'

/** A message, and what identifies it. */
export interface Candidate {
  /** The id of the message inside of a gift wrap, or of a legacy event. */
  readonly id: string
  readonly createdAt: number
  /** The id of the event that brought it. */
  readonly event: string
  readonly inbounds: readonly Inbound[]
}

/** The ids of events that were handled in this run: relays repeat them, and each relay has its own copy. */
const EVENTS_MAX = 20_000

export interface IntakeOptions {
  readonly host: Host
  readonly identity: Identity
  readonly positions: Positions
  readonly deliver: Deliver
  /** Aborts when the channel stops. */
  readonly signal: AbortSignal
}

export class Intake {
  readonly #options: IntakeOptions
  readonly #events = new BoundedMap<string, true>(EVENTS_MAX)
  /** Resolves when the newest task and all tasks before it have ended. */
  #last: Promise<unknown> = Promise.resolve()

  constructor(options: IntakeOptions) {
    this.#options = options
  }

  /** Reads an event of a relay, after all that came before. Resolves to undefined for one that is known, wrong or no message. */
  read(json: unknown, relay: string): Promise<Candidate | undefined> {
    return this.#run(async () => {
      // Verification takes milliseconds of the processor for each event.
      await setImmediate()
      return this.#read(json, relay)
    })
  }

  /** Delivers messages in this order, after all that came before. Resolves to false if the channel stops while the store fails. */
  deliver(candidates: readonly Candidate[]): Promise<boolean> {
    return this.#run(async () => {
      for (const candidate of candidates) if (!(await this.#deliver(candidate))) return false
      return true
    })
  }

  /** Resolves when nothing waits. */
  async settled(): Promise<void> {
    await this.#last
  }

  #run<Result>(task: () => Promise<Result>): Promise<Result> {
    const done = this.#last.then(task)
    this.#last = done.catch(() => undefined)
    return done
  }

  #read(json: unknown, relay: string): Candidate | undefined {
    const { identity, positions, host } = this.#options
    const claimed = (json as { readonly id?: unknown } | null)?.id
    if (typeof claimed !== 'string' || this.#events.has(claimed)) return undefined
    const event = readSigned(json)
    if (!event) {
      host.log.debug('event with a wrong id or signature ignored', { channel: 'relaynet', relay: shownUrl(relay) })
      return undefined
    }
    const nowSecs = host.clock.nowMs() / 1000
    const candidate = isExpired(event, nowSecs) ? undefined : open(identity, event)
    const { createdAt = 0, id = '' } = candidate ?? {}
    if (!candidate || positions.seen.has(id, createdAt)) return this.#ignore(event)
    if (createdAt < positions.acceptSince(relay)) return undefined
    if (createdAt > nowSecs + FUTURE_SECS_MAX) {
      host.log.warn('message ignored, because its time is more than a day in the future', { channel: 'relaynet', relay: shownUrl(relay) })
      return this.#ignore(event)
    }
    return candidate
  }

  #ignore({ id }: SignedEvent): undefined {
    this.#events.set(id, true)
  }

  async #deliver({ id, createdAt, event, inbounds }: Candidate): Promise<boolean> {
    const { host, positions, deliver, signal } = this.#options
    if (this.#events.has(event) || positions.seen.has(id, createdAt)) return true
    for (const inbound of inbounds) if (!(await storePatiently(host, { channel: 'relaynet', inbound, deliver, signal }))) return false
    this.#events.set(event, true)
    positions.seen.add(id, createdAt)
    // Written at once, because the inbox forgets ids after some days. The runner reports a write that fails.
    void positions.seen.flush().catch(() => undefined)
    return true
  }
}

/** Returns the message in a verified event; undefined when the bot cannot read it. */
function open(identity: Identity, event: SignedEvent): Candidate | undefined {
  if (event.kind === GIFT_WRAP) {
    const rumor = unwrap(identity, event)
    return rumor && { id: rumor.id, createdAt: rumor.created_at, event: event.id, inbounds: parsePrivate(rumor, identity.pubkey) }
  }
  if (event.kind !== LEGACY_MESSAGE || event.pubkey === identity.pubkey) return undefined
  const text = decryptLegacy(identity, event)
  const inbounds = text === undefined ? [] : parseLegacy(event, text, identity.pubkey)
  return { id: event.id, createdAt: event.created_at, event: event.id, inbounds }
}

/** See https://github.com/nostr-protocol/nips/blob/master/40.md. */
function isExpired(event: SignedEvent, nowSecs: number): boolean {
  const expiration = Number(tagValue(event, 'expiration') ?? Number.POSITIVE_INFINITY)
  return expiration < nowSecs
}
