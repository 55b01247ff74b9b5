/**
 * The telephone of a person, and the media stream that a provider makes of its call: 20 ms of μ-law at a time, in real time, over a real
 * WebSocket. The messages follow the providers' documentation: twilio.com/docs/voice/media-streams/websocket-messages,
 * developers.telnyx.com/docs/voice/programmable-voice/media-streaming, and plivo.com/docs/voice-agents/audio-streaming.
 */
import { ByteBuffer } from '@sluice/kit'
import { textAt } from '@sluice/kit/foreign-json'

const FRAME_MS = 20
const FRAME_BYTES = 160
/** The value of silence. */
const SILENT = 0xff

export type ProviderName = 'twilio' | 'telnyx' | 'plivo'
/** An item that waits to be played: audio, or the name of a mark. */
type Queued = Uint8Array | string

interface Dialect {
  start(call: string): readonly object[]
  media(payload: string, count: number): object
  played(name: string): object
  stop(call: string): object
  /** The audio, the mark or the wish to clear in a message of the other side. */
  readonly audio: readonly [event: string, payload: string]
  readonly mark: readonly [event: string, name: string]
  readonly clear: string
  /** Reports the marks of audio that was cleared as played. */
  readonly reportsCleared: boolean
}

const STREAM = 'MZ00000000000000000000000000000001'
const FORMAT = { encoding: 'audio/x-mulaw', sampleRate: 8000, channels: 1 }

const DIALECTS: Readonly<Record<ProviderName, Dialect>> = {
  twilio: {
    start: (callSid) => [
      { event: 'connected', protocol: 'Call', version: '1.0.0' },
      {
        event: 'start',
        sequenceNumber: '1',
        start: { accountSid: 'AC1', streamSid: STREAM, callSid, tracks: ['inbound'], mediaFormat: FORMAT, customParameters: {} },
        streamSid: STREAM,
      },
    ],
    media: (payload, count) => ({
      event: 'media',
      sequenceNumber: String(count + 1),
      media: { track: 'inbound', chunk: String(count), timestamp: String(count * FRAME_MS), payload },
      streamSid: STREAM,
    }),
    played: (name) => ({ event: 'mark', sequenceNumber: '4', streamSid: STREAM, mark: { name } }),
    stop: (callSid) => ({ event: 'stop', sequenceNumber: '5', streamSid: STREAM, stop: { accountSid: 'AC1', callSid } }),
    audio: ['media', 'media.payload'],
    mark: ['mark', 'mark.name'],
    clear: 'clear',
    reportsCleared: true,
  },
  telnyx: {
    start: (call) => [
      { event: 'connected', version: '1.0.0' },
      {
        event: 'start',
        sequence_number: '1',
        start: { user_id: 'u', call_control_id: call, media_format: { encoding: 'PCMU', sample_rate: 8000, channels: 1 } },
        stream_id: STREAM,
      },
    ],
    media: (payload, count) => ({
      event: 'media',
      sequence_number: String(count + 1),
      media: { track: 'inbound', chunk: String(count), timestamp: String(count * FRAME_MS), payload },
      stream_id: STREAM,
    }),
    played: (name) => ({ event: 'mark', sequence_number: '4', stream_id: STREAM, mark: { name } }),
    stop: (call) => ({ event: 'stop', sequence_number: '5', stream_id: STREAM, stop: { user_id: 'u', call_control_id: call } }),
    audio: ['media', 'media.payload'],
    mark: ['mark', 'mark.name'],
    clear: 'clear',
    reportsCleared: true,
  },
  plivo: {
    start: (callId) => [
      {
        sequenceNumber: 0,
        event: 'start',
        start: { callId, streamId: STREAM, accountId: 'MA1', tracks: ['inbound'], mediaFormat: FORMAT },
        extra_headers: '{}',
      },
    ],
    media: (payload, count) => ({
      sequenceNumber: count,
      streamId: STREAM,
      event: 'media',
      media: { track: 'inbound', timestamp: String(count * FRAME_MS), chunk: count, payload },
      extra_headers: '{}',
    }),
    played: (name) => ({ event: 'playedStream', sequenceNumber: 4, streamId: STREAM, name }),
    stop: (callId) => ({ event: 'stop', sequenceNumber: 5, streamId: STREAM, stop: { callId } }),
    audio: ['playAudio', 'media.payload'],
    mark: ['checkpoint', 'name'],
    clear: 'clearAudio',
    reportsCleared: false,
  },
}

export class Phone {
  readonly #dialect: Dialect
  readonly #call: string
  readonly #socket: WebSocket
  readonly #queued: Queued[] = []
  readonly #heard = new ByteBuffer()
  readonly #closed = Promise.withResolvers<number>()
  #speech: Uint8Array[] = []
  #spoken = Promise.withResolvers<void>()
  #timer: NodeJS.Timeout | undefined
  #frames = 0
  #startedAtMs = 0
  /** How often the other side dropped what was not played yet. */
  clears = 0

  private constructor(provider: ProviderName, call: string, url: string) {
    this.#dialect = DIALECTS[provider]
    this.#call = call
    this.#socket = new WebSocket(url)
    this.#socket.addEventListener('message', ({ data }) => this.#receive(String(data)))
    this.#socket.addEventListener('close', ({ code }) => {
      clearInterval(this.#timer)
      this.#spoken.resolve()
      this.#closed.resolve(code)
    })
  }

  /** Connects the media stream. Resolves once it has begun. Throws when it is refused. */
  static async connect(provider: ProviderName, call: string, url: string): Promise<Phone> {
    const phone = new Phone(provider, call, url)
    await new Promise<void>((resolve, reject) => {
      phone.#socket.addEventListener('open', () => resolve(), { once: true })
      phone.#socket.addEventListener('error', () => reject(new Error('The media stream was refused.')), { once: true })
    })
    for (const message of phone.#dialect.start(call)) phone.#send(message)
    phone.#startedAtMs = performance.now()
    phone.#timer = setInterval(() => phone.#tick(), FRAME_MS)
    return phone
  }

  /** The code with which the stream was closed. */
  get closed(): Promise<number> {
    return this.#closed.promise
  }

  /** True while something is being played. */
  get isPlaying(): boolean {
    return this.#queued.length > 0
  }

  /** Speaks μ-law. Resolves once all of it was sent. */
  async say(mulaw: Uint8Array): Promise<void> {
    this.#spoken = Promise.withResolvers()
    for (let at = 0; at + FRAME_BYTES <= mulaw.length; at += FRAME_BYTES) this.#speech.push(mulaw.subarray(at, at + FRAME_BYTES))
    await this.#spoken.promise
  }

  /** Returns the μ-law that was played since the last call of this method. */
  takeHeard(): Uint8Array {
    const heard = Uint8Array.from(this.#heard.bytes())
    this.#heard.clear()
    return heard
  }

  hangUp(): void {
    this.#send(this.#dialect.stop(this.#call))
    this.#socket.close()
  }

  #tick(): void {
    for (const due = (performance.now() - this.#startedAtMs) / FRAME_MS; this.#frames < due; this.#frames++) {
      const speech = this.#speech.shift()
      const bytes = speech ?? new Uint8Array(FRAME_BYTES).fill(SILENT)
      this.#send(this.#dialect.media(Buffer.from(bytes).toString('base64'), this.#frames))
      if (speech && this.#speech.length === 0) this.#spoken.resolve()
      this.#play(FRAME_BYTES)
    }
  }

  #play(bytes: number): void {
    for (let left = bytes; ; ) {
      const [next] = this.#queued
      if (next === undefined) return
      if (typeof next === 'string') {
        this.#queued.shift()
        this.#send(this.#dialect.played(next))
      } else if (left === 0) return
      else {
        const piece = next.subarray(0, left)
        this.#heard.append(Uint8Array.from(piece))
        left -= piece.length
        if (piece.length === next.length) this.#queued.shift()
        else this.#queued[0] = next.subarray(piece.length)
      }
    }
  }

  #receive(text: string): void {
    const message: unknown = JSON.parse(text)
    const { audio, mark, clear, reportsCleared } = this.#dialect
    const event = textAt(message, 'event')
    if (event === audio[0]) this.#queued.push(Buffer.from(textAt(message, audio[1]), 'base64'))
    else if (event === mark[0]) this.#queued.push(textAt(message, mark[1]))
    else if (event === clear) {
      this.clears++
      for (const queued of this.#queued.splice(0))
        if (typeof queued === 'string' && reportsCleared) this.#send(this.#dialect.played(queued))
    } else throw new Error(`The provider knows no message '${event}'.`)
  }

  #send(message: object): void {
    if (this.#socket.readyState === WebSocket.OPEN) this.#socket.send(JSON.stringify(message))
  }
}
