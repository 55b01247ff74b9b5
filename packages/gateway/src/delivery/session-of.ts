/** The session a message belongs to: what one sender says in one conversation, isolated from everybody else's. */
import type { Inbound } from '@sluice/sdk'

/** Who owns the turns and sessions of a channel; no device has such a name. */
export const channelOwner = (channel: string): string => `channel:${channel}`

/** Who sent a message, on every connection and after a restart; as `ToolContext.caller`. */
export const senderOf = (channel: string, { account, sender }: Pick<Inbound, 'account' | 'sender'>): string =>
  `${channelOwner(channel)}/${[account, sender].map((part) => encodeURIComponent(part.toWellFormed())).join('/')}`

/** Escaped, so that no part can pass for two. */
export function sessionOf(channel: string, { account, sender, to }: Inbound): string {
  const parts = [account, to.to, ...(to.thread === undefined ? [] : [to.thread]), sender]
  return `${channelOwner(channel)}/${parts.map((part) => encodeURIComponent(part.toWellFormed())).join('/')}`
}
