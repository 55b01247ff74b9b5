/** Finds what a person says in the audio of a call, by its loudness. */
import { loudness, RATE } from './audio.ts'

export interface UtterancesOptions {
  /** The loudness, from 0 to 1, from which audio counts as speech. */
  readonly threshold: number
  /** The silence that ends an utterance. */
  readonly silenceMs: number
  /** A longer utterance is cut here. */
  readonly utteranceMsMax: number
  /** Somebody has begun to speak. */
  onSpeech(): void
  /** The samples of one utterance, with a little of what came before. */
  onUtterance(samples: Int16Array): void
}

const FRAME = (RATE * 20) / 1000
/** Shorter sounds, such as a click, are no speech. */
const SPEECH_FRAMES_MIN = 4
/** The audio before speech was noticed, so that its first sound is kept. */
const LEAD_FRAMES = 20
const msOf = (frames: number): number => (frames * FRAME * 1000) / RATE

export class Utterances {
  readonly #options: UtterancesOptions
  /** Samples that do not fill a frame yet. */
  #rest = new Int16Array(0)
  /** The frames of the utterance; while nobody speaks, the last few. */
  #frames: Int16Array[] = []
  #loud = 0
  #quiet = 0
  #isSpeech = false

  constructor(options: UtterancesOptions) {
    this.#options = options
  }

  push(samples: Int16Array): void {
    const all = new Int16Array(this.#rest.length + samples.length)
    all.set(this.#rest)
    all.set(samples, this.#rest.length)
    let at = 0
    for (; at + FRAME <= all.length; at += FRAME) this.#take(all.slice(at, at + FRAME))
    this.#rest = all.slice(at)
  }

  #take(frame: Int16Array): void {
    const { threshold, silenceMs, utteranceMsMax, onSpeech } = this.#options
    const isLoud = loudness(frame) >= threshold
    this.#loud = isLoud ? this.#loud + 1 : 0
    this.#quiet = isLoud ? 0 : this.#quiet + 1
    this.#frames.push(frame)
    if (!this.#isSpeech) {
      if (this.#frames.length > LEAD_FRAMES) this.#frames.shift()
      if (this.#loud < SPEECH_FRAMES_MIN) return
      this.#isSpeech = true
      onSpeech()
    }
    if (msOf(this.#quiet) >= silenceMs || msOf(this.#frames.length) >= utteranceMsMax) this.#end()
  }

  #end(): void {
    const samples = new Int16Array(this.#frames.length * FRAME)
    this.#frames.forEach((frame, index) => void samples.set(frame, index * FRAME))
    this.#frames = []
    this.#isSpeech = false
    this.#loud = 0
    this.#quiet = 0
    this.#options.onUtterance(samples)
  }
}
