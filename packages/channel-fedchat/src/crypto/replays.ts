/**
 * Recognises a message that the homeserver shows a second time under another event id: each index of a session encrypts one message
 * (client-server API, "Replay attacks" of Megolm).
 */
import { members, parsedOrUndefined } from '@sluice/kit/foreign-json'
import { sha256Hex } from '@sluice/sdk'
import type { Vault } from '../vault.ts'

const SEEN = 'seen/'
const SESSIONS_MAX = 500
/** Clients change the session after a hundred messages unless the room asks for another number. */
const INDEXES_MAX = 2000

type Seen = Map<string, string>

export class Replays {
  readonly #vault: Vault
  readonly #sessions: Map<string, Seen>

  private constructor(vault: Vault, sessions: Map<string, Seen>) {
    this.#vault = vault
    this.#sessions = sessions
  }

  static async load(vault: Vault): Promise<Replays> {
    const records = await vault.read(SEEN)
    const sessions = [...records].map(([name, value]): [string, Seen] => [
      name,
      new Map(Object.entries(members(parsedOrUndefined(value))).map(([index, event]) => [index, String(event)])),
    ])
    return new Replays(vault, new Map(sessions))
  }

  get size(): number {
    return this.#sessions.size
  }

  /** Tells whether no other event has had this index of the session. Durable after the next flush of the vault. */
  isFirst(session: string, ciphertext: string, event: string): boolean {
    const index = indexOf(ciphertext)
    if (index === undefined) return true
    const name = `${SEEN}${sha256Hex(session).slice(0, 32)}`
    const seen = this.#sessions.get(name) ?? new Map<string, string>()
    const known = seen.get(String(index))
    if (known !== undefined) return known === shortened(event)
    seen.set(String(index), shortened(event))
    if (seen.size > INDEXES_MAX) seen.delete(seen.keys().next().value ?? '')
    // The session in use moves to the end, so that the first one is the longest unused.
    this.#sessions.delete(name)
    this.#sessions.set(name, seen)
    this.#vault.put(name, Object.fromEntries(seen))
    if (this.#sessions.size > SESSIONS_MAX) this.#forget(this.#sessions.keys().next().value ?? '')
    return true
  }

  #forget(name: string): void {
    this.#sessions.delete(name)
    this.#vault.set(name, undefined)
  }
}

const shortened = (event: string): string => sha256Hex(event).slice(0, 16)

/** Reads the index of a Megolm message: a version byte, the tag of the field, and the index as a variable-length integer. */
export function indexOf(ciphertext: string): number | undefined {
  const bytes = Buffer.from(ciphertext.slice(0, 16), 'base64')
  if (bytes[0] !== 3 || bytes[1] !== 8) return undefined
  let index = 0
  for (let at = 2, scale = 1; at < bytes.length; at++, scale *= 128) {
    const byte = bytes[at] ?? 0
    index += (byte & 127) * scale
    if (byte < 128) return index
  }
  return undefined
}
