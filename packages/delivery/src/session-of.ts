/** The session a message belongs to: what one sender says in one conversation, isolated from everybody else's. */
import type { Inbound } from '@sluice/sdk'

/** Who owns the turns and sessions of a channel; no device has such a name. */
export const channelOwner = (channel: string): string => `channel:${channel}`

/** Who sent a message, on every connection and after a restart; as `ToolContext.caller`. */
export const senderOf = (channel: string, { account, sender }: Pick<Inbound, 'account' | 'sender'>): string =>
  `${channelOwner(channel)}/${[account, sender].map((part) => encodeURIComponent(part.toWellFormed())).join('/')}`

/** Whose conversation a session of a channel is; undefined for the session of a device. */
export function personIn(session: string): { readonly channel: string; readonly account: string; readonly sender: string } | undefined {
  const [owner = '', account, ...others] = session.split('/')
  const sender = others.at(-1)
  if (!owner.startsWith(channelOwner('')) || account === undefined || sender === undefined) return undefined
  try {
    return { channel: owner.slice(channelOwner('').length), account: decodeURIComponent(account), sender: decodeURIComponent(sender) }
  } catch {
    return undefined
  }
}

/** What the sessions of one sender of a channel begin and end with. */
export const sessionsOfSender = (channel: string, sender: string): { readonly prefix: string; readonly suffix: string } => ({
  prefix: `${channelOwner(channel)}/`,
  suffix: `/${encodeURIComponent(sender.toWellFormed())}`,
})

/** Escaped, so that no part can pass for two. */
export function sessionOf(channel: string, { account, sender, to }: Inbound): string {
  const parts = [account, to.to, ...(to.thread === undefined ? [] : [to.thread]), sender]
  return `${channelOwner(channel)}/${parts.map((part) => encodeURIComponent(part.toWellFormed())).join('/')}`
}
