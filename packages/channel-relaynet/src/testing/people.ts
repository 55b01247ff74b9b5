/** People who write to the bot with the library `nostr-tools`, as clients do. */
import { hash } from 'node:crypto'
import { matchFilter } from 'nostr-tools/filter'
import { decrypt as decryptLegacy, encrypt as encryptLegacy } from 'nostr-tools/nip04'
import { createRumor, createSeal, createWrap, unwrapEvent } from 'nostr-tools/nip59'
import { type Event, finalizeEvent, getPublicKey } from 'nostr-tools/pure'

export type { Event }

export const secretKeyOfPerson = (name: string): Uint8Array => new Uint8Array(hash('sha256', `sluice person ${name}`, 'buffer'))

export const pubkeyOf = (name: string): string => getPublicKey(secretKeyOfPerson(name))

/** The bot of the tests. */
export const BOT = 'bot'

/** A message that a person writes. */
export interface Said {
  readonly text: string
  /** Default: `ada`. */
  readonly from?: string
  /** Default: `nip17`. */
  readonly protocol?: 'nip04' | 'nip17'
  readonly kind?: number
  readonly tags?: readonly (readonly string[])[]
  /** Further members of the conversation, by name. */
  readonly others?: readonly string[]
  /** Default: the time of the clock. */
  readonly atMs?: number
}

/** The event that brings a message to the bot, and the id of the message. */
export interface Written {
  readonly event: Event
  readonly id: string
}

export function write({ text, from = 'ada', protocol = 'nip17', kind = 14, tags = [], others = [], atMs = Date.now() }: Said): Written {
  const secretKey = secretKeyOfPerson(from)
  const createdAt = Math.floor(atMs / 1000)
  const bot = pubkeyOf(BOT)
  const more = tags.map((tag) => [...tag])
  if (protocol === 'nip04') {
    const event = finalizeEvent(
      { kind: 4, created_at: createdAt, tags: [['p', bot], ...more], content: encryptLegacy(secretKey, bot, text) },
      secretKey,
    )
    return { event, id: event.id }
  }
  const receivers = [bot, ...others.map(pubkeyOf)].map((key) => ['p', key])
  const rumor = createRumor({ kind, created_at: createdAt, tags: [...receivers, ...more], content: text }, secretKey)
  // The library hides the time relative to the clock of the machine, and not relative to that of the test.
  const wrapped = createWrap(createSeal(rumor, secretKey, bot), bot)
  return { event: wrapped, id: rumor.id }
}

/** The message that a person reads in an event: undefined unless it is for this person. */
export interface Heard {
  readonly id: string
  readonly from: string
  readonly text: string
  readonly protocol: 'nip04' | 'nip17'
  readonly kind: number
  readonly createdAt: number
  readonly tags: readonly (readonly string[])[]
}

export function read(event: Event, name: string): Heard | undefined {
  const secretKey = secretKeyOfPerson(name)
  if (!matchFilter({ '#p': [getPublicKey(secretKey)], kinds: [4, 1059] }, event)) return undefined
  if (event.kind === 4) {
    const { id, pubkey: from, created_at: createdAt, tags, kind } = event
    return { id, from, text: decryptLegacy(secretKey, from, event.content), protocol: 'nip04', kind, createdAt, tags }
  }
  const { id, pubkey: from, content: text, kind, created_at: createdAt, tags } = unwrapEvent(event, secretKey)
  return { id, from, text, protocol: 'nip17', kind, createdAt, tags }
}
