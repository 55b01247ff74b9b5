/** Records until the recorder ends, and turns utterances into messages. */
import { SerialQueue, signalScope, storePatiently } from '@sluice/kit'
import { AppError, type Deliver, errorText, type Host, type ListenContext, type Transcribe } from '@sluice/sdk'
import { toWav, type Utterance, Utterances } from '@sluice/voice-common'
import type { VoiceWakeConfig } from './config.ts'
import { chooseRecorder } from './recorder.ts'
import { SAMPLE_RATE, SampleReader } from './samples.ts'
import { commandAfter } from './wake-word.ts'

/** The only sender: every person at the microphone. */
export const SPEAKER = 'voice_user'
export const ACCOUNT = 'microphone'

/** The recorder hangs if nothing comes for this time: a microphone sends silence, too. */
const SILENCE_MS = 10_000
/** After the wake word alone, the command must begin within this time. */
const AWAKE_MS = 8000
const WAITING_MAX = 4
/** The beginning of an utterance in which the wake word is looked for. The rest is transcribed only after the wake word. */
const WINDOW_MS = 2500
/** The sound before an utterance that is transcribed with it. */
const LEAD_MS = 500
const MINUTE_MS = 60_000
const TRANSCRIBE_MS = 60_000
const NO_TRANSCRIPTION = '[transcription] is not enabled, so nothing is heard: set `enabled = true` there'
const STDERR_BYTES_MAX = 4096
const REASON_CHARS_MAX = 200

/**
 * Returns the text of a recording; undefined if it cannot be transcribed now, which is logged. It is not transcribed unless `calls`
 * calls are left in this minute: this one, and the further ones for the same utterance.
 */
type TranscribeUtterance = (wav: Uint8Array, calls: number) => Promise<string | undefined>

export class VoiceListener {
  readonly #host: Host
  readonly #config: VoiceWakeConfig
  /** The times of the last transcriptions, oldest first. */
  #calls: number[] = []
  #hasWarned = false

  constructor(host: Host, config: VoiceWakeConfig) {
    this.#host = host
    this.#config = config
  }

  /** See `Channel.listen`. */
  async listen(deliver: Deliver, context: ListenContext): Promise<void> {
    const { signal, report } = context
    if (!this.#host.service('transcribe')) throw new AppError('forbidden', NO_TRANSCRIPTION)
    const recorder = await chooseRecorder(this.#config)
    const over = new AbortController()
    using recording = signalScope([signal, over.signal])
    const hearing = new Hearing(this.#config, (wav, calls) => this.#transcribe(wav, calls, context), deliver, this.#host, signal)
    const samples = new SampleReader()
    const utterances = new Utterances({
      rate: SAMPLE_RATE,
      threshold: this.#config.energy_threshold,
      silenceMs: this.#config.silence_timeout_ms,
      msMax: this.#config.max_capture_secs * 1000,
      leadMs: LEAD_MS,
    })
    /** Settles when everything that the recorder sent was read. */
    let read: Promise<void> | undefined
    let problem = ''
    const reading = this.#host.spawn({
      ...recorder,
      cwd: '/',
      policy: { writable: [], network: false, devices: ['/dev/snd'] },
      timeoutMs: Number.POSITIVE_INFINITY,
      outputBytesMax: STDERR_BYTES_MAX,
      signal: recording.signal,
      onStart: ({ output }) => {
        read = this.#read(output, recording.signal, (bytes) => {
          report.connected()
          for (const utterance of utterances.push(samples.push(bytes))) {
            report.event()
            hearing.take(utterance)
          }
        })
          .catch((error: unknown) => {
            problem ||= errorText(error)
          })
          .finally(() => over.abort())
      },
    })
    try {
      const { exitCode, stderr } = await reading
      await read
      if (signal.aborted) return
      const reason = stderr.trim().split('\n').at(-1)?.slice(0, REASON_CHARS_MAX) || problem || `exit code ${exitCode}`
      throw new AppError('unavailable', `The recorder ${recorder.file} ended: ${reason}`)
    } catch (error) {
      if (!signal.aborted) throw error
    } finally {
      over.abort()
      if (signal.aborted) await hearing.settled()
    }
  }

  /** Reads until the program ends. Throws when it sends nothing for some time. */
  async #read(output: AsyncIterable<Uint8Array>, signal: AbortSignal, take: (bytes: Uint8Array) => void): Promise<void> {
    const { clock } = this.#host
    const over = new AbortController()
    let lastMs = clock.monotonicMs()
    const iterator = output[Symbol.asyncIterator]()
    const silent = Promise.withResolvers<never>()
    const watch = async (): Promise<void> => {
      for (;;) {
        await clock.sleep(SILENCE_MS / 2, over.signal)
        if (over.signal.aborted) return
        if (clock.monotonicMs() - lastMs >= SILENCE_MS) silent.reject(new AppError('unavailable', 'it sent no sound for 10 s'))
      }
    }
    silent.promise.catch(() => undefined)
    void watch()
    try {
      while (!signal.aborted) {
        const { done, value } = await Promise.race([iterator.next(), silent.promise])
        if (done) return
        lastMs = clock.monotonicMs()
        take(value)
      }
    } finally {
      over.abort()
    }
  }

  /** See `TranscribeUtterance`. */
  async #transcribe(wav: Uint8Array, calls: number, { signal, report }: ListenContext): Promise<string | undefined> {
    const { clock, log, workspace } = this.#host
    const nowMs = clock.monotonicMs()
    this.#calls = this.#calls.filter((atMs) => nowMs - atMs < MINUTE_MS)
    if (this.#calls.length + calls > this.#config.max_transcriptions_per_minute) {
      if (!this.#hasWarned) log.warn('utterance not transcribed: max_transcriptions_per_minute is reached', { channel: 'voice_wake' })
      this.#hasWarned = true
      return undefined
    }
    this.#hasWarned = false
    this.#calls.push(nowMs)
    const transcribe: Transcribe | undefined = this.#host.service('transcribe')
    if (!transcribe) return void report.problem(NO_TRANSCRIPTION)
    using limit = signalScope([signal], TRANSCRIBE_MS, clock)
    try {
      const text = await transcribe({ bytes: wav, name: 'utterance.wav', mime: 'audio/wav' }, { signal: limit.signal, workspace })
      report.problem(undefined)
      return text
    } catch (error) {
      if (signal.aborted) return undefined
      log.warn('utterance not transcribed', { channel: 'voice_wake', reason: errorText(error) })
      // A recording that is refused, such as one without words, says nothing about the next one.
      const isRefused = error instanceof AppError && error.code === 'invalid_request'
      if (!isRefused) report.problem(`the last utterance was not transcribed: ${errorText(error)}`)
      return undefined
    }
  }
}

/** Looks for the wake word in utterances, one after another, and delivers commands. */
class Hearing {
  readonly #config: VoiceWakeConfig
  readonly #transcribe: TranscribeUtterance
  readonly #deliver: Deliver
  readonly #host: Host
  readonly #signal: AbortSignal
  readonly #queue = new SerialQueue({ name: 'the transcription', tasksMax: WAITING_MAX })
  #last: Promise<unknown> = Promise.resolve()
  /** The time of the sound until which a command may begin without the wake word. */
  #awakeUntilMs = Number.NEGATIVE_INFINITY
  /** The time of the sound at which the last utterance was cut. */
  #cutAtMs = Number.NEGATIVE_INFINITY

  constructor(config: VoiceWakeConfig, transcribe: TranscribeUtterance, deliver: Deliver, host: Host, signal: AbortSignal) {
    this.#config = config
    this.#transcribe = transcribe
    this.#deliver = deliver
    this.#host = host
    this.#signal = signal
  }

  /** Handles an utterance after those before it. Drops it when too many wait. */
  take(utterance: Utterance): void {
    const { isCut, beginMs, endMs } = utterance
    // The silence between them would have ended an utterance.
    const isRest = beginMs - this.#cutAtMs < this.#config.silence_timeout_ms
    if (isCut) this.#cutAtMs = endMs
    const handled = this.#queue
      .run(() => this.#handle(utterance, isRest))
      .catch((error: unknown) => {
        this.#host.log.warn('utterance dropped', { channel: 'voice_wake', reason: errorText(error) })
      })
    this.#last = Promise.allSettled([this.#last, handled])
  }

  async settled(): Promise<void> {
    await this.#last
  }

  /** `isRest`: the utterance goes on from one that was cut. */
  async #handle(utterance: Utterance, isRest: boolean): Promise<void> {
    if (this.#signal.aborted) return
    const { samples, beginMs, endMs } = utterance
    const isAwake = beginMs <= this.#awakeUntilMs
    if (isRest && !isAwake) return
    const transcript = isAwake ? await this.#textOf(samples) : await this.#textAfterWindow(utterance)
    if (!transcript) return
    const after = this.#commandIn(transcript)
    const command = after ?? (isAwake ? transcript : '')
    // The wake word alone, once or again, waits for the command.
    this.#awakeUntilMs = after === '' ? endMs + AWAKE_MS : Number.NEGATIVE_INFINITY
    if (command !== '') await this.#say(command)
  }

  async #textOf(samples: Int16Array, calls = 1): Promise<string | undefined> {
    return (await this.#transcribe(toWav(samples, SAMPLE_RATE), calls))?.trim()
  }

  /**
   * Resolves to the text of an utterance, of which the rest is transcribed only when the window has the wake word. A command is never
   * taken from the window alone if more was said: its end may change what it means.
   */
  async #textAfterWindow({ samples, isCut, beginMs, endMs }: Utterance): Promise<string | undefined> {
    const soundMs = endMs - beginMs - (isCut ? 0 : this.#config.silence_timeout_ms)
    const isLonger = soundMs > WINDOW_MS
    const window = await this.#textOf(samples.subarray(0, (WINDOW_MS * SAMPLE_RATE) / 1000), isLonger ? 2 : 1)
    if (!window || !isLonger || this.#commandIn(window) === undefined) return window
    const whole = await this.#textOf(samples)
    // With more sound, a transcription may write the beginning in another way.
    if (whole !== undefined && this.#commandIn(whole) === undefined)
      this.#host.log.warn('command dropped: the transcription of the whole utterance lacks the wake word', { channel: 'voice_wake' })
    return whole
  }

  #commandIn(transcript: string): string | undefined {
    return commandAfter(this.#config.wake_word, transcript, this.#config.wake_whole_word)
  }

  async #say(text: string): Promise<void> {
    const { clock } = this.#host
    const inbound = {
      id: `voice_wake_${crypto.randomUUID()}`,
      account: ACCOUNT,
      sender: SPEAKER,
      to: { to: SPEAKER },
      addressed: 'direct' as const,
      text,
      sentAtMs: clock.nowMs(),
    }
    await storePatiently(this.#host, { channel: 'voice_wake', inbound, deliver: this.#deliver, signal: this.#signal })
  }
}
