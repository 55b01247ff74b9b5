/** Events as bytes, for server-sent events and for WebSockets: made once, written to every subscriber as they are (§6). */
import type { BusEvent } from './bus.ts'

/** How one kind of stream spells what it sends. */
export interface Framing {
  event(event: BusEvent): Buffer
  /** Something was lost; null: nobody can tell how much. */
  gap(missed: number | null): Buffer
}

/** `event:` is the event's type; the data is one line, since JSON escapes line breaks. */
export const sseFraming: Framing = {
  event: ({ envelope, json }) => Buffer.from(`id: ${envelope.id}\nevent: ${envelope.type}\ndata: ${json}\n\n`),
  gap: (missed) => Buffer.from(`event: gap\ndata: ${JSON.stringify({ missed })}\n\n`),
}

/** The payload of one text message; the WebSocket adds its own header. */
export const socketFraming: Framing = {
  event: ({ json }) => Buffer.from(json),
  gap: (missed) => Buffer.from(JSON.stringify({ type: 'gap', missed })),
}
