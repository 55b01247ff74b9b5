/** The bytes of events as clients read them. */
import type { Writable } from 'node:stream'
import { type BusEvent, createEventBus } from '@sluice/runtime'
import { testClock } from '@sluice/testkit/clock'
import { expect, test } from 'vitest'
import * as ws from 'ws'
import { socketFraming, sseFraming } from './frames.ts'

function eventWith(text: string): BusEvent {
  const bus = createEventBus({ clock: testClock(), run: 'r' })
  bus.emit({ type: 'x_text', text })
  const [event] = bus.recent(1)
  if (!event) throw new Error('nothing was kept')
  return event
}

/** The library exports it, but its types do not. */
const { Receiver } = ws as unknown as { readonly Receiver: new () => Writable }

/** Decodes a frame as a WebSocket client does. */
const receive = (frame: Buffer): Promise<{ text: string; isBinary: boolean }> =>
  new Promise((resolve, reject) => {
    const receiver = new Receiver()
    receiver.on('message', (data: Buffer, isBinary: boolean) => resolve({ text: data.toString(), isBinary }))
    receiver.on('error', reject)
    receiver.write(frame)
  })

const ENVELOPE_BYTES = Buffer.byteLength(eventWith('').json)

test.each([ENVELOPE_BYTES, 125, 126, 65_535, 65_536, 200_000])(
  'RFC 6455: a message of %i bytes is one text frame of that length',
  async (bytes) => {
    const event = eventWith('x'.repeat(bytes - ENVELOPE_BYTES))
    expect(event.json).toHaveLength(bytes)
    expect(await receive(socketFraming.event(event))).toEqual({ text: event.json, isBinary: false })
  },
)

test('lengths count bytes, not characters', async () => {
  const event = eventWith('ü€😀'.repeat(20))
  expect(await receive(socketFraming.event(event))).toEqual({ text: event.json, isBinary: false })
  expect(await receive(socketFraming.gap(null))).toEqual({ text: '{"type":"gap","missed":null}', isBinary: false })
})

test('an event is one server-sent event, whatever its text is', () => {
  const event = eventWith('a\nb\r\ndata: c\n\nid: 1')
  const lines = sseFraming.event(event).toString().split('\n')
  expect(lines).toEqual(['id: r-1', 'event: x_text', `data: ${event.json}`, '', ''])
  expect(sseFraming.gap(3).toString()).toBe('event: gap\ndata: {"missed":3}\n\n')
})
