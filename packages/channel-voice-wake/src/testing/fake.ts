/** A microphone that plays texts as tones, and a transcription that recognises these tones. It takes the place of a recorder. */
import type { ProcessPipes, SpawnRequest, SpawnResult, Transcribe } from '@sluice/sdk'
import { AppError } from '@sluice/sdk'
import type { FakeProvider } from '@sluice/testkit/fake-provider'
import type { TestHostOverrides } from '@sluice/testkit/host'
import { SAMPLE_RATE } from '../samples.ts'

/** A tone alternates between plus and minus this value and the number of its text. */
const TONE = 3000
const TEXTS_MAX = 1000

export interface MicrophoneFake extends FakeProvider {
  /** The members of the host that bring the microphone and the transcription. */
  readonly host: TestHostOverrides
  /** How often a recorder was started. */
  readonly started: number
  /** The requests to start a recorder. */
  readonly spawned: readonly SpawnRequest[]
  /** The recordings that were transcribed. */
  readonly recordings: readonly Uint8Array[]
  /** Speaks a text, and then is silent for `silenceMs` (default 2,500). */
  say(text: string, options?: { readonly silenceMs?: number; readonly speechMs?: number }): void
  /** Plays samples. */
  play(pcm: Uint8Array): void
  /** Keeps the recorders running, but sends nothing more. */
  mute(): void
  /** Turns `[transcription]` off, or on again. */
  setTranscription(isOn: boolean): void
  /** The errors that the next transcriptions throw. */
  readonly failures: unknown[]
}

/** Samples of one channel in 16 bits. */
export function tone(value: number, ms: number): Uint8Array {
  const samples = new Int16Array(Math.round((SAMPLE_RATE * ms) / 1000))
  for (let index = 0; index < samples.length; index += 1) samples[index] = index % 8 < 4 ? value : -value
  return new Uint8Array(samples.buffer)
}

export const silence = (ms: number): Uint8Array => tone(0, ms)

export function startMicrophoneFake(): MicrophoneFake {
  const texts: string[] = []
  const recordings: Uint8Array[] = []
  const spawned: SpawnRequest[] = []
  const failures: unknown[] = []
  const running = new Set<Recording>()
  let isDown = false
  let hasTranscription = true

  const transcribe: Transcribe = async ({ bytes }) => {
    recordings.push(bytes)
    const failure = failures.shift()
    if (failure !== undefined) throw failure
    const { buffer, byteOffset, byteLength } = Uint8Array.from(bytes.subarray(44))
    const samples = new Int16Array(buffer, byteOffset, byteLength / 2)
    return texts[(samples.find((sample) => sample >= TONE) ?? -1) - TONE] ?? ''
  }

  async function spawn(request: SpawnRequest): Promise<SpawnResult> {
    spawned.push(request)
    const result = { exitCode: 1, signal: null, timedOut: false, stdout: '', truncated: false, sandbox: 'none' }
    if (isDown) return { ...result, stderr: 'arecord: main: audio open error: No such file or directory\n' }
    const recording = new Recording()
    running.add(recording)
    const stop = () => recording.end()
    request.signal.addEventListener('abort', stop, { once: true })
    if (request.signal.aborted) throw new AppError('aborted', 'The recorder was not started')
    request.onStart?.({ output: recording.output(), write: async () => undefined } satisfies ProcessPipes)
    recording.push(silence(100))
    await recording.ended
    running.delete(recording)
    return { ...result, stderr: 'arecord: pcm_read: read error: No such device\n' }
  }

  const play = (pcm: Uint8Array): void => {
    for (const recording of running) recording.push(pcm)
  }
  return {
    url: 'microphone:',
    requests: [],
    fail: () => undefined,
    host: {
      spawn,
      services: {
        get transcribe() {
          return (hasTranscription ? transcribe : undefined) as Transcribe
        },
      },
    },
    spawned,
    recordings,
    failures,
    get started() {
      return spawned.length
    },
    say(text, { silenceMs = 2500, speechMs = 400 } = {}) {
      if (texts.length >= TEXTS_MAX) throw new Error(`The fake can say ${TEXTS_MAX} texts.`)
      texts.push(text)
      play(Buffer.concat([silence(300), tone(TONE + texts.length - 1, speechMs), silence(silenceMs)]))
    },
    play,
    mute() {
      for (const recording of running) recording.mute()
    },
    setTranscription(isOn) {
      hasTranscription = isOn
    },
    cut(options = {}) {
      isDown = options.isDown ?? false
      for (const recording of running) recording.end()
    },
    async close() {
      for (const recording of running) recording.end()
    },
  }
}

/** The output of one recorder. */
class Recording {
  readonly #chunks: Uint8Array[] = []
  readonly #ended = Promise.withResolvers<void>()
  #isOver = false
  #isMuted = false
  #wake: () => void = () => undefined

  get ended(): Promise<void> {
    return this.#ended.promise
  }

  push(bytes: Uint8Array): void {
    if (this.#isMuted) return
    this.#chunks.push(bytes)
    this.#wake()
  }

  mute(): void {
    this.#isMuted = true
  }

  end(): void {
    this.#isOver = true
    this.#ended.resolve()
    this.#wake()
  }

  async *output(): AsyncGenerator<Uint8Array> {
    for (;;) {
      const next = this.#chunks.shift()
      if (next) yield next
      else if (this.#isOver) return
      else await new Promise<void>((resolve) => (this.#wake = resolve))
    }
  }
}
