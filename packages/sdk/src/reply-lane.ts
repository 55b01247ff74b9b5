/** The lane of what goes out: one conversation, or one thread of it, hears us in order. */
import type { NewReply } from './delivery-store.ts'

export const replyLane = ({ channel, account, to }: Pick<NewReply, 'channel' | 'account' | 'to'>): string =>
  JSON.stringify([channel, account, to.to, to.thread])
