/** The audio of one call: turns what the person says into messages, and speaks the replies, which the person can interrupt. */
import { SerialQueue, signalScope } from '@sluice/kit'
import {
  AppError,
  errorText,
  type FeatureSocket,
  type Logger,
  type SocketListener,
  type Speak,
  type Transcribe,
  type Workspace,
} from '@sluice/sdk'
import { toWav, Utterances } from '@sluice/voice-common'
import { fromMulaw, fromWav, RATE, toMulaw } from './audio.ts'
import type { StreamCodec, StreamMessage } from './telephony.ts'

/** One second of μ-law. */
const FRAME_BYTES = 8000
/** Utterances that wait for their text; a person who speaks faster than they are recognised is not heard. */
const WAITING_MAX = 8
/** The sound before an utterance that is recognised with it. */
const LEAD_MS = 400
const POLICY_VIOLATION = 1008

export interface MediaSessionOptions {
  readonly call: string
  readonly codec: StreamCodec
  readonly log: Logger
  readonly speak: Speak
  readonly transcribe: Transcribe
  readonly workspace: Workspace
  readonly threshold: number
  readonly silenceMs: number
  readonly msMax: number
  /** Spoken after words that were not recognised or not stored; empty: nothing. */
  readonly notUnderstood: string
  /** The platform has connected the audio of the call. */
  onStart(session: MediaSession): void
  /** Resolves when the text is stored. */
  onText(text: string): Promise<void>
  /** Sound arrived or was played. */
  onActivity(): void
  onEnd(session: MediaSession): void
}

export class MediaSession implements SocketListener {
  readonly #options: MediaSessionOptions
  readonly #socket: FeatureSocket
  readonly #utterances: Utterances
  readonly #ended = new AbortController()
  readonly #heard: SerialQueue
  readonly #spoken: SerialQueue
  #stream: string | undefined
  /** The marks that were sent and not played. */
  readonly #playing = new Set<string>()
  #marks = 0
  #waiting = 0
  /** Counts interruptions: a text that was begun before one is not continued after it. */
  #interruptions = 0

  constructor(socket: FeatureSocket, options: MediaSessionOptions) {
    this.#options = options
    this.#socket = socket
    this.#heard = new SerialQueue({ name: 'the recognition of a call', tasksMax: WAITING_MAX })
    this.#spoken = new SerialQueue({ name: 'the replies of a call', tasksMax: WAITING_MAX })
    this.#utterances = new Utterances({
      rate: RATE,
      leadMs: LEAD_MS,
      ...options,
      onSpeech: () => this.#interrupt(),
    })
  }

  /** True while something is being spoken or recognised. */
  get isBusy(): boolean {
    return this.#playing.size > 0 || this.#waiting > 0
  }

  message(data: string | Uint8Array): void {
    const message = typeof data === 'string' ? this.#options.codec.read(data) : undefined
    if (message?.kind === 'start') this.#start(message)
    else if (message?.kind === 'audio' && this.#stream !== undefined) this.#hear(message.bytes)
    else if (message?.kind === 'stop') this.#socket.close()
    else if (message?.kind === 'played') {
      this.#playing.delete(message.mark)
      this.#options.onActivity()
    }
  }

  closed(): void {
    this.#ended.abort(new AppError('aborted', 'The call has ended'))
    this.#playing.clear()
    this.#options.onEnd(this)
  }

  end(): void {
    this.#socket.close()
  }

  /** Speaks a text after those before it. Resolves when the platform has its audio. Throws as `Channel.send` does. */
  say(text: string, signal: AbortSignal): Promise<void> {
    return this.#spoken.run(async () => {
      const { speak, workspace, codec } = this.#options
      const before = this.#interruptions
      using both = signalScope([signal, this.#ended.signal])
      const { bytes } = await speak(text, { formats: ['wav'], workspace, signal: both.signal })
      if (this.#ended.signal.aborted || this.#stream === undefined) throw new AppError('invalid_request', 'The call has ended')
      // The person has begun to speak meanwhile, and does not want to hear the rest.
      if (before !== this.#interruptions) return
      const audio = toMulaw(fromWav(bytes))
      for (let at = 0; at < audio.length; at += FRAME_BYTES)
        this.#socket.send(codec.audio(this.#stream, audio.subarray(at, at + FRAME_BYTES)))
      const mark = `m${this.#marks++}`
      this.#playing.add(mark)
      this.#socket.send(codec.mark(this.#stream, mark))
      this.#options.onActivity()
    })
  }

  /** The first message names the call. The token of the path belongs to one call only. */
  #start({ call, stream }: StreamMessage & { readonly kind: 'start' }): void {
    if (call !== this.#options.call || this.#stream !== undefined) {
      this.#socket.close(POLICY_VIOLATION, 'this stream belongs to another call')
      return
    }
    this.#stream = stream
    this.#options.onStart(this)
  }

  #hear(bytes: Uint8Array): void {
    for (const { samples } of this.#utterances.push(fromMulaw(bytes))) this.#recognise(samples)
  }

  #interrupt(): void {
    this.#options.onActivity()
    if (this.#stream === undefined || this.#playing.size === 0) return
    this.#interruptions++
    this.#playing.clear()
    this.#socket.send(this.#options.codec.clear(this.#stream))
  }

  /** The caller would wait for an answer that never comes. */
  #sayNotUnderstood(): void {
    const { call, log, notUnderstood } = this.#options
    if (notUnderstood === '') return
    void this.say(notUnderstood, this.#ended.signal).catch((error: unknown) => {
      if (!this.#ended.signal.aborted)
        log.warn('a caller could not be told that the words were not understood', { call, error: errorText(error) })
    })
  }

  #recognise(samples: Int16Array): void {
    const { log, transcribe, workspace, onText, onActivity, call } = this.#options
    if (this.#waiting >= WAITING_MAX) {
      log.warn('an utterance was dropped: too many wait to be recognised', { call })
      this.#sayNotUnderstood()
      return
    }
    this.#waiting++
    void this.#heard
      .run(async () => {
        const recording = { bytes: toWav(samples, RATE), name: 'utterance.wav', mime: 'audio/wav' }
        const text = await transcribe(recording, { signal: this.#ended.signal, workspace })
        if (text !== '') await onText(text)
      })
      .catch((error: unknown) => {
        if (this.#ended.signal.aborted) return
        log.warn('what a caller said could not be recognised', { call, error: errorText(error) })
        this.#sayNotUnderstood()
      })
      .finally(() => {
        this.#waiting--
        onActivity()
      })
  }
}
