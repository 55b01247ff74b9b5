/** The sessions of channels: one for each sender in each conversation, so that no sender sees what another one said. */
import type { ApprovalKey, Inbound } from '@sluice/sdk'

/** The owner of the turns and sessions of a channel. No device has such a name. */
export const channelOwner = (channel: string): string => `channel:${channel}`

/** The identity of a sender, the same on every connection and after a restart; as `ToolContext.caller`. */
export const senderOf = (channel: string, { account, sender }: Pick<Inbound, 'account' | 'sender'>): string =>
  `${channelOwner(channel)}/${joined([account, sender])}`

/** The session of a message: account, conversation, thread if there is one, and sender. */
export function sessionOf(channel: string, { account, sender, to }: Inbound): string {
  const thread = to.thread === undefined ? [] : [to.thread]
  return `${channelOwner(channel)}/${joined([account, to.to, ...thread, sender])}`
}

/**
 * The lane of a reply to an approval, in the place of a session. It differs from the lane of the turn that waits for the reply,
 * which would otherwise hold it up. The reply of a pressed button is in the lane of the message that has the button.
 */
export const approvalReplyLane = (channel: string, approval: ApprovalKey | undefined, { pressed }: Inbound): string =>
  `approval:${channel}/${joined(approval ? [approval.runId, approval.stepId] : [pressed?.message ?? ''])}`

/** The sender of a session of a channel; undefined for the session of a device. */
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

/** The beginning and the end that all sessions of one sender of a channel have. */
export const sessionsOfSender = (channel: string, sender: string): { readonly prefix: string; readonly suffix: string } => ({
  prefix: `${channelOwner(channel)}/`,
  suffix: `/${joined([sender])}`,
})

/** Escapes the parts, so that no part can pass for two. */
const joined = (parts: readonly string[]): string => parts.map((part) => encodeURIComponent(part.toWellFormed())).join('/')
