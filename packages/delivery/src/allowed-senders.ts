/** The allowlist of a channel, compiled once; and the one notice a day that a stranger is worth (§5 rule 6). */
import { BoundedMap } from '@sluice/kit'
import { type Channel, type Clock, isAllowed, type Logger } from '@sluice/sdk'

const STRANGERS_MAX = 10_000
/** Longer names are looked up each time and never noticed: what a stranger sends must not fill the memory. */
const SENDER_CHARS_MAX = 256
const NOTICE_MS = 24 * 3_600_000

export interface AllowedSenders {
  /** True if the sender may talk to the agent. A stranger is told nothing; the log says so once a day. */
  admit(channel: Channel, sender: string): boolean
}

export function createAllowedSenders({ clock, log }: { readonly clock: Clock; readonly log: Logger }): AllowedSenders {
  /** Of each channel, what was asked lately: a list may be long, and each entry has to be normalised. */
  const known = new WeakMap<Channel, BoundedMap<string, boolean>>()
  const noticedAtMs = new BoundedMap<string, number>(STRANGERS_MAX)

  const notice = (channel: Channel, sender: string): void => {
    const key = `${channel.name} ${sender}`
    const nowMs = clock.nowMs()
    if (nowMs - (noticedAtMs.get(key) ?? Number.NEGATIVE_INFINITY) < NOTICE_MS) return
    noticedAtMs.delete(key)
    noticedAtMs.set(key, nowMs)
    log.info('a message of a sender off the allowlist was dropped', { channel: channel.name, sender })
  }

  return {
    admit(channel, sender) {
      if (sender.length > SENDER_CHARS_MAX) return isListed(channel, sender)
      const decided = known.get(channel) ?? new BoundedMap<string, boolean>(STRANGERS_MAX)
      known.set(channel, decided)
      const before = decided.get(sender)
      const allowed = before ?? isListed(channel, sender)
      if (before === undefined) decided.set(sender, allowed)
      if (!allowed) notice(channel, sender)
      return allowed
    },
  }
}

const isListed = (channel: Channel, sender: string): boolean =>
  isAllowed(
    channel.allow,
    sender,
    (entry) => channel.normalise?.(entry) ?? entry,
    (entry, value) => channel.matches?.(entry, value) ?? false,
  )
