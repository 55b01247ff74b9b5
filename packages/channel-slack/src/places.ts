/** Which cursors a message moves. */
import type { Inbound } from '@sluice/sdk'
import { type Members, text } from '@sluice/sdk/foreign-json'
import type { Cursor } from './cursors.ts'

export function placesOf(event: Members, { to }: Inbound): readonly Cursor[] {
  const [upTo, thread] = [text(event.ts), text(event.thread_ts)]
  const isInThread = thread !== '' && thread !== upTo
  const isInChannel = !isInThread || event.subtype === 'thread_broadcast'
  return [
    ...(isInChannel ? [{ channel: to.to, upTo }] : []),
    // The thread of the answer, which may be answered in turn.
    ...(to.thread === undefined ? [] : [{ channel: to.to, thread: to.thread, upTo }]),
  ]
}
