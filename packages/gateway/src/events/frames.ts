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

/** Text messages; framed here, because the library would do it again for each subscriber. */
export const socketFraming: Framing = {
  event: ({ json }) => textMessage(json),
  gap: (missed) => textMessage(JSON.stringify({ type: 'gap', missed })),
}

const FINAL_TEXT = 0x81

/** One whole text message as a server writes it: final, neither masked nor compressed (RFC 6455 section 5.2). */
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
