/**
 * Keeps messages in the order in which they arrived: the library decrypts some of them at the same time. A message that was decrypted waits
 * for earlier messages.
 */
import type { BinaryNode } from '@whiskeysockets/baileys'

/** The library may give a message up without decrypting it, so the others wait this long at most for the first one. */
const WAIT_MS_MAX = 5000
/** Messages that are being decrypted at once; beyond it their order is that of their decryption. */
export const ARRIVALS_MAX = 10_000

interface Arrival {
  readonly name: string
  /** The encrypted contents that were not decrypted yet. */
  left: number
}

export class Arrivals {
  readonly #open = new Map<BinaryNode, Arrival>()
  readonly #nowMs: () => number
  #first: BinaryNode | undefined
  #firstSinceMs = 0

  /** `nowMs` never decreases. */
  constructor(nowMs: () => number = () => performance.now()) {
    this.#nowMs = nowMs
  }

  /** A message with `contents` encrypted contents arrived. `name` sorts after the names of earlier messages. */
  add(stanza: BinaryNode, name: string, contents: number): void {
    if (contents > 0 && this.#open.size < ARRIVALS_MAX) this.#open.set(stanza, { name, left: contents })
  }

  /** One content of a message was decrypted, or cannot be. */
  done(stanza: BinaryNode): void {
    const arrival = this.#open.get(stanza)
    if (arrival && --arrival.left === 0) this.#open.delete(stanza)
  }

  /** The name of the first message that is being decrypted, for which later ones wait; undefined without one. */
  get first(): string | undefined {
    for (const [stanza, { name }] of this.#open) {
      if (stanza !== this.#first) {
        this.#first = stanza
        this.#firstSinceMs = this.#nowMs()
      }
      if (this.#nowMs() - this.#firstSinceMs < WAIT_MS_MAX) return name
      this.#open.delete(stanza)
    }
    this.#first = undefined
    return undefined
  }
}
