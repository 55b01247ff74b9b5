/** Events of Nostr (NIP-01) in foreign JSON. */
import { list, members } from '@sluice/kit/foreign-json'
import { getEventHash, verifyEvent } from 'nostr-tools/pure'

/** An event without a signature: a message inside of a gift wrap. */
export interface Rumor {
  readonly id: string
  readonly pubkey: string
  /** Seconds since 1970. */
  readonly created_at: number
  readonly kind: number
  readonly tags: readonly (readonly string[])[]
  readonly content: string
}

export interface SignedEvent extends Rumor {
  readonly sig: string
}

const HEX_32 = /^[0-9a-f]{64}$/
const HEX_64 = /^[0-9a-f]{128}$/
const TAGS_MAX = 2000

/** Returns the event if its id is the hash of its content and its signature is valid; undefined otherwise. */
export function readSigned(json: unknown): SignedEvent | undefined {
  const rumor = readRumor(json)
  const { sig } = members(json)
  if (!rumor || typeof sig !== 'string' || !HEX_64.test(sig)) return undefined
  const event = { ...rumor, sig }
  return verifyEvent(unfrozen(event)) ? event : undefined
}

/** Returns the event if its id is the hash of its content. */
export function readRumor(json: unknown): Rumor | undefined {
  const { id, pubkey, created_at, kind, content, tags } = members(json)
  if (typeof id !== 'string' || typeof pubkey !== 'string' || !HEX_32.test(id) || !HEX_32.test(pubkey)) return undefined
  if (!isCount(created_at) || !isCount(kind) || typeof content !== 'string') return undefined
  const rows = list(tags)
  if (!Array.isArray(tags) || rows.length > TAGS_MAX || !rows.every(isTag)) return undefined
  const rumor = { id, pubkey, created_at, kind, content, tags: rows as readonly (readonly string[])[] }
  return getEventHash(unfrozen(rumor)) === id ? rumor : undefined
}

/** Returns the second member of the first tag with this name. */
export const tagValue = ({ tags }: Rumor, name: string): string | undefined => tags.find(([first]) => first === name)?.[1]

/** Returns the second members of all tags with this name. */
export const tagValues = ({ tags }: Rumor, name: string): string[] =>
  tags.flatMap(([first, value]) => (first === name && value !== undefined ? [value] : []))

/** The library's types ask for arrays that it may change, which it does not do. It caches the outcome of a verification in the object. */
export const unfrozen = <E extends Rumor>(event: E) => ({ ...event, tags: event.tags.map((tag) => [...tag]) })

const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0

const isTag = (value: unknown): boolean => Array.isArray(value) && value.every((member) => typeof member === 'string')
