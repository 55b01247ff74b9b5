/** The allowlists of channels, with one log line a day for each sender that is not allowed. */
import { BoundedMap } from '@sluice/kit'
import { type Channel, type Clock, isAllowed, type Logger } from '@sluice/sdk'

const SENDERS_MAX = 10_000
/** Longer names are neither cached nor logged, so that strangers cannot fill the memory. */
const SENDER_CHARS_MAX = 256
const LOG_AGAIN_MS = 24 * 3_600_000

export class AllowedSenders {
  readonly #clock: Clock
  readonly #log: Logger
  /** Recent verdicts for each channel: a list may be long, and every entry must be normalised. Null: the channel takes every sender. */
  readonly #verdicts = new WeakMap<Channel, BoundedMap<string, boolean> | null>()
  readonly #loggedAtMs = new BoundedMap<string, number>(SENDERS_MAX)

  constructor({ clock, log }: { readonly clock: Clock; readonly log: Logger }) {
    this.#clock = clock
    this.#log = log
  }

  /** True if the sender may talk to the agent. A sender that may not gets no answer, and a log line. */
  admit(channel: Channel, sender: string): boolean {
    const isAdmitted = this.admits(channel, sender)
    if (!isAdmitted && sender.length <= SENDER_CHARS_MAX) this.#logOnceADay(channel, sender)
    return isAdmitted
  }

  /** Tells the same without a log line. */
  admits(channel: Channel, sender: string): boolean {
    if (sender.length > SENDER_CHARS_MAX) return isListed(channel, sender)
    const verdicts = this.#verdictsOf(channel)
    if (!verdicts) return true
    let isAdmitted = verdicts.get(sender)
    if (isAdmitted === undefined) {
      isAdmitted = isListed(channel, sender)
      verdicts.set(sender, isAdmitted)
    }
    return isAdmitted
  }

  #verdictsOf(channel: Channel): BoundedMap<string, boolean> | null {
    const known = this.#verdicts.get(channel)
    if (known !== undefined) return known
    const verdicts = channel.allow.includes('*') ? null : new BoundedMap<string, boolean>(SENDERS_MAX)
    this.#verdicts.set(channel, verdicts)
    return verdicts
  }

  #logOnceADay(channel: Channel, sender: string): void {
    const key = `${channel.name} ${sender}`
    const nowMs = this.#clock.nowMs()
    if (nowMs - (this.#loggedAtMs.get(key) ?? Number.NEGATIVE_INFINITY) < LOG_AGAIN_MS) return
    this.#loggedAtMs.delete(key)
    this.#loggedAtMs.set(key, nowMs)
    this.#log.info('message dropped: the sender is not on the allowlist', { channel: channel.name, sender })
  }
}

/** Tells whether an entry of the allowlist other than `*` covers the sender. */
export const isNamed = (channel: Channel, sender: string): boolean =>
  isListed(
    channel,
    sender,
    channel.allow.filter((entry) => entry !== '*'),
  )

/** Tells whether the allowlist of a channel admits a sender. */
export const isAdmitted = (channel: Channel, sender: string): boolean => isListed(channel, sender)

const isListed = (channel: Channel, sender: string, allow = channel.allow): boolean =>
  isAllowed(
    allow,
    sender,
    (entry) => channel.normalise?.(entry) ?? entry,
    (entry, value) => channel.matches?.(entry, value) ?? false,
  )
