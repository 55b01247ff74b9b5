/** Which cursors a message moves. */

import { type Members, text } from '@sluice/kit/foreign-json'
import type { Inbound } from '@sluice/sdk'
import type { Place } from './cursors.ts'

/** In order: the conversation, the thread. */
export function placesOf(event: Members, { to }: Inbound): readonly Place[] {
  const thread = text(event.thread_ts)
  const isInThread = thread !== '' && thread !== text(event.ts)
  const isInChannel = !isInThread || event.subtype === 'thread_broadcast'
  return [...(isInChannel ? [{ channel: to.to }] : []), ...(isInThread ? [{ channel: to.to, thread }] : [])]
}
