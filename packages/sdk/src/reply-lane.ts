/** Returns the lane of a reply: replies to one conversation or thread are sent in order. */
import type { NewReply } from './delivery-store.ts'

export const replyLane = ({ channel, account, to }: Pick<NewReply, 'channel' | 'account' | 'to'>): string =>
  JSON.stringify([channel, account, to.to, to.thread])
