/** Messages that were just queued, as their lanes want them. */
import { type NewReply, replyLane, type Waiting } from '@sluice/sdk'

/** `numbers` are those in the outbox, in the order of the replies. */
export const waitingReplies = (replies: readonly NewReply[], numbers: readonly number[]): readonly Waiting[] =>
  numbers.flatMap((number, index): Waiting[] => {
    const reply = replies[index]
    return reply ? [{ number, channel: reply.channel, account: reply.account, lane: replyLane(reply), atMs: 0, cuts: 0 }] : []
  })
