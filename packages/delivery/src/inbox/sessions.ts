/** The sessions of channels: one for each sender in each conversation, or one that all people of a room share. */
import { type ApprovalKey, agentKey, channelOwner, chatSessionKey, escapedParts, type Inbound } from '@sluice/sdk'

/** The session of a message with an agent: account, conversation, thread if there is one, and, unless it `isShared`, sender. */
export function sessionOf(
  agent: string,
  channel: string,
  { account, sender, to: { to: conversation, thread } }: Pick<Inbound, 'account' | 'sender' | 'to'>,
  isShared: boolean,
): string {
  const key = chatSessionKey({ channel, account, conversation, ...(thread !== undefined && { thread }), ...(!isShared && { sender }) })
  return agentKey(agent, key)
}

/**
 * The lane of a reply to an approval, in the place of a session. It differs from the lane of the turn that waits for the reply,
 * which would otherwise hold it up. The reply of a pressed button is in the lane of the message that has the button.
 */
export const approvalReplyLane = (channel: string, approval: ApprovalKey | undefined, { pressed }: Inbound): string =>
  `approval:${channel}/${escapedParts(approval ? [approval.runId, approval.stepId] : [pressed?.message || (pressed?.value ?? '')])}`

/** The beginning, without the agent, and the end that all sessions of one sender of a channel have. */
export const sessionsOfSender = (channel: string, sender: string): { readonly prefix: string; readonly suffix: string } => ({
  prefix: `${channelOwner(channel)}/`,
  suffix: `/${escapedParts([sender])}`,
})
