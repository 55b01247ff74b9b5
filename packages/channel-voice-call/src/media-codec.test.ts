/** The messages of media streams, as the documentation of each provider shows them. */
import { describe, expect, test } from 'vitest'
import { plivoStream } from './plivo.ts'
import { telnyxStream } from './telnyx.ts'
import { twilioStream } from './twilio.ts'

const PAYLOAD = Buffer.from([0xff, 0x7f]).toString('base64')
const parsed = (text: string): unknown => JSON.parse(text)

describe.each([
  {
    name: 'twilio',
    codec: twilioStream,
    start: {
      event: 'start',
      sequenceNumber: '1',
      start: { accountSid: 'AC1', streamSid: 's1', callSid: 'c1', tracks: ['inbound'] },
      streamSid: 's1',
    },
    media: {
      event: 'media',
      sequenceNumber: '3',
      media: { track: 'inbound', chunk: '1', timestamp: '5', payload: PAYLOAD },
      streamSid: 's1',
    },
    played: { event: 'mark', sequenceNumber: '4', streamSid: 's1', mark: { name: 'm0' } },
    stop: { event: 'stop', sequenceNumber: '5', stop: { accountSid: 'AC1', callSid: 'c1' }, streamSid: 's1' },
    audio: { event: 'media', streamSid: 's1', media: { payload: PAYLOAD } },
    mark: { event: 'mark', streamSid: 's1', mark: { name: 'm0' } },
    clear: { event: 'clear', streamSid: 's1' },
  },
  {
    name: 'telnyx',
    codec: telnyxStream,
    start: {
      event: 'start',
      sequence_number: '1',
      start: { user_id: 'u', call_control_id: 'c1', media_format: { encoding: 'PCMU' } },
      stream_id: 's1',
    },
    media: {
      event: 'media',
      sequence_number: '4',
      media: { track: 'inbound_track', chunk: '2', timestamp: '5', payload: PAYLOAD },
      stream_id: 's1',
    },
    played: { event: 'mark', sequence_number: '5', stream_id: 's1', mark: { name: 'm0' } },
    stop: { event: 'stop', sequence_number: '5', stop: { call_control_id: 'c1' }, stream_id: 's1' },
    audio: { event: 'media', media: { payload: PAYLOAD } },
    mark: { event: 'mark', mark: { name: 'm0' } },
    clear: { event: 'clear' },
  },
  {
    name: 'plivo',
    codec: plivoStream,
    start: {
      sequenceNumber: 0,
      event: 'start',
      start: { callId: 'c1', streamId: 's1', accountId: 'a', tracks: ['inbound'] },
      extra_headers: '{}',
    },
    media: { sequenceNumber: 1, streamId: 's1', event: 'media', media: { track: 'inbound', timestamp: '1', chunk: 1, payload: PAYLOAD } },
    played: { event: 'playedStream', streamId: 's1', name: 'm0' },
    stop: { event: 'stop', streamId: 's1' },
    audio: { event: 'playAudio', media: { contentType: 'audio/x-mulaw', sampleRate: 8000, payload: PAYLOAD } },
    mark: { event: 'checkpoint', streamId: 's1', name: 'm0' },
    clear: { event: 'clearAudio', streamId: 's1' },
  },
])('the stream of $name', ({ codec, start, media, played, stop, audio, mark, clear }) => {
  test('reads the messages of the provider', () => {
    expect(codec.read(JSON.stringify(start))).toEqual({ kind: 'start', call: 'c1', stream: 's1' })
    expect(codec.read(JSON.stringify(media))).toEqual({ kind: 'audio', bytes: Buffer.from([0xff, 0x7f]) })
    expect(codec.read(JSON.stringify(played))).toEqual({ kind: 'played', mark: 'm0' })
    expect(codec.read(JSON.stringify(stop))).toEqual({ kind: 'stop' })
  })

  test('writes the messages of the provider', () => {
    expect(parsed(codec.audio('s1', Uint8Array.of(0xff, 0x7f)))).toEqual(audio)
    expect(parsed(codec.mark('s1', 'm0'))).toEqual(mark)
    expect(parsed(codec.clear('s1'))).toEqual(clear)
  })

  test.each(['', 'null', '[]', '{}', '{"event":5}', '{"event":"dtmf"}', '{'])('ignores %s', (text) => {
    expect(codec.read(text)).toBeUndefined()
  })
})
