/** Events as bytes, for server-sent events and for WebSockets. Each is framed once and written to every subscriber unchanged. */

import type { BusEvent } from '@sluice/runtime'
import * as v from 'valibot'

const described = <const Type extends string, const Entries extends v.ObjectEntries>(type: Type, description: string, entries: Entries) =>
  v.pipe(v.object({ type: v.literal(type), ...entries }), v.readonly(), v.description(description))

/** The frames that are not events. `/ws/events` sends both, `/api/events` only `gap`. */
export const streamFrameSchema = v.variant('type', [
  described('connected', 'First on `/ws/events`: the run of the daemon and the number of its newest event', {
    run: v.string(),
    seq: v.number(),
  }),
  described('gap', 'Events are missing. On `/api/events` the event is named `gap`, and its data has only `missed`', {
    missed: v.pipe(
      v.nullable(v.number()),
      v.description('The number of missed events; null if it is unknown, for example after a restart'),
    ),
  }),
])

export type StreamFrame = v.InferOutput<typeof streamFrameSchema>

/** The format of one kind of stream. */
export interface Framing {
  event(event: BusEvent): Buffer
  /** Tells a subscriber how many events it missed; null if the number is unknown. */
  gap(missed: number | null): Buffer
}

/** `event:` is the event's type; the data is one line, since JSON escapes line breaks. */
export const sseFraming: Framing = {
  event: ({ envelope, json }) => Buffer.from(`id: ${envelope.id}\nevent: ${envelope.type}\ndata: ${json}\n\n`),
  gap: (missed) => Buffer.from(`event: gap\ndata: ${JSON.stringify({ missed })}\n\n`),
}

/** Text messages, framed here because the library would frame each of them again for each subscriber. */
export const socketFraming: Framing = {
  event: ({ json }) => textMessage(json),
  gap: (missed) => textMessage(JSON.stringify({ type: 'gap', missed } satisfies StreamFrame)),
}

const FINAL_TEXT = 0x81

/** Frames a text message of a server: in one piece, neither masked nor compressed (RFC 6455 section 5.2). */
function textMessage(text: string): Buffer {
  const payload = Buffer.from(text)
  const { length } = payload
  if (length < 126) return Buffer.concat([Buffer.from([FINAL_TEXT, length]), payload])
  const head = Buffer.alloc(length < 65_536 ? 4 : 10)
  head.writeUInt16BE((FINAL_TEXT << 8) | (length < 65_536 ? 126 : 127))
  if (length < 65_536) head.writeUInt16BE(length, 2)
  else head.writeBigUInt64BE(BigInt(length), 2)
  return Buffer.concat([head, payload])
}
