/**
 * The messages of queued rows as they were parsed at intake, so that a turn reads nothing from the store. A message that finds no room
 * here is read from the store when its turn comes, as after a restart.
 */
import type { Inbound } from '@sluice/sdk'

const MESSAGES_MAX = 2000
/** All messages together. */
const CHARS_MAX = 4_000_000

export class ArrivedMessages {
  /** By the number of the row. */
  readonly #messages = new Map<number, Inbound>()
  #chars = 0

  get size(): number {
    return this.#messages.size
  }

  /** The oldest messages stay, because their turns come first. */
  add(number: number, message: Inbound): void {
    const chars = charsOf(message)
    if (this.#messages.size >= MESSAGES_MAX || this.#chars + chars > CHARS_MAX || this.#messages.has(number)) return
    this.#messages.set(number, message)
    this.#chars += chars
  }

  get(number: number): Inbound | undefined {
    return this.#messages.get(number)
  }

  /** Call it when the message has left the queue, or has changed in the store. */
  delete(number: number): void {
    const message = this.#messages.get(number)
    if (!message) return
    this.#messages.delete(number)
    this.#chars -= charsOf(message)
  }
}

/** Ids and addresses are short. */
const OTHERS_CHARS = 200

function charsOf({ text, typed = '', attachments = [], quoted, forwarded, things = [] }: Inbound): number {
  let chars = OTHERS_CHARS + text.length + typed.length
  for (const { text: words } of [quoted, forwarded, ...things].filter((part) => part !== undefined)) chars += OTHERS_CHARS + words.length
  for (const { name, source } of [...attachments, ...(quoted?.attachments ?? []), ...(forwarded?.attachments ?? [])])
    chars += name.length + ('url' in source ? source.url.length : OTHERS_CHARS)
  return chars
}
