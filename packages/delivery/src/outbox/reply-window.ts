/** The time and number of replies that a platform accepts to one message. */
import type { Channel, ReplyWindow, StartedReply } from '@sluice/sdk'

type Reply = Pick<StartedReply, 'part' | 'extras' | 'to'>

const windowOf = ({ replyWindow }: Channel['limits'], { to }: Reply): ReplyWindow | undefined =>
  typeof replyWindow === 'function' ? replyWindow(to) : replyWindow

/** Returns the end of the window in milliseconds since 1970. Infinity without a window, or for a message that answers none. */
function endMs({ extras }: Reply, window: ReplyWindow | undefined): number {
  const { answersAtMs } = extras ?? {}
  return window === undefined || answersAtMs === undefined ? Number.POSITIVE_INFINITY : answersAtMs + window.seconds * 1000
}

const isSurplus = ({ part, extras }: Reply, window: ReplyWindow | undefined): boolean =>
  extras?.answersAtMs !== undefined && part > (window?.count ?? Number.POSITIVE_INFINITY)

/** Returns the reply as the platform accepts it at this time: without the message it answers if it is late or surplus. */
export function asAccepted<T extends StartedReply>(reply: T, { limits }: Pick<Channel, 'limits'>, nowMs: number): T {
  const replyWindow = windowOf(limits, reply)
  if (replyWindow?.after !== 'proactive' || !(nowMs > endMs(reply, replyWindow) || isSurplus(reply, replyWindow))) return reply
  const { replyTo: _, ...to } = reply.to
  return { ...reply, to }
}

/** Returns why the platform will refuse the reply at this time; undefined if it may accept it. */
export function closedReason(reply: Reply, { name, limits }: Pick<Channel, 'name' | 'limits'>, atMs: number): string | undefined {
  const replyWindow = windowOf(limits, reply)
  if (replyWindow?.after !== 'closed') return undefined
  if (isSurplus(reply, replyWindow)) return `${name} accepts ${replyWindow.count} replies to a message`
  if (atMs <= endMs(reply, replyWindow)) return undefined
  return `${name} accepts replies to a message for ${durationOf(replyWindow.seconds)}`
}

function durationOf(seconds: number): string {
  if (seconds % 3600 === 0) return `${seconds / 3600} h`
  return seconds % 60 === 0 ? `${seconds / 60} min` : `${seconds} s`
}
