/** Cuts sound into utterances by its loudness. Pure: time is the number of samples. */
import { ByteBuffer } from '@sluice/kit'

const FRAME_MS = 20
/** A click is shorter than any word. */
const SPEECH_FRAMES_MIN = 4
/** Speech is so much louder than steady noise, such as a fan. */
const NOISE_FACTOR = 2
const NOISE_SMOOTHING_FRAMES = 5
const NOISE_BLOCK_FRAMES = 25
const NOISE_BLOCKS = 12

export interface UtterancesOptions {
  /** Samples in a second. */
  readonly rate: number
  /** The loudness, from 0 to 1, from which sound counts as speech. In steady noise, twice the loudness of the noise counts instead. */
  readonly threshold: number
  /** The silence that ends an utterance. */
  readonly silenceMs: number
  /** A longer utterance is cut here. */
  readonly msMax: number
  /** The sound before an utterance that is kept with it: its first sound is softer than the threshold. */
  readonly leadMs: number
  /** Is called when an utterance begins. */
  onSpeech?(): void
}

/** One utterance, with the sound before it and the silence that ended it. */
export interface Utterance {
  readonly samples: Int16Array
  /** It was as long as allowed, so the rest of it is missing. */
  readonly isCut: boolean
  /** Milliseconds of sound from the first sample of all to the beginning and the end of this utterance. */
  readonly beginMs: number
  readonly endMs: number
}

export class Utterances {
  readonly #options: UtterancesOptions
  readonly #frameSamples: number
  readonly #noise = new NoiseFloor()
  /** Samples that do not fill a frame yet. */
  #rest = new Int16Array(0)
  /** The last frames during silence. */
  readonly #before: Int16Array[] = []
  /** The utterance that has begun. */
  readonly #sound = new ByteBuffer()
  #loudFrames = 0
  #quietFrames = 0
  #frames = 0

  constructor(options: UtterancesOptions) {
    this.#options = options
    this.#frameSamples = (options.rate * FRAME_MS) / 1000
  }

  /** Takes the next samples. Returns the utterances that they end. */
  push(samples: Int16Array): Utterance[] {
    const ended: Utterance[] = []
    const all = new Int16Array(this.#rest.length + samples.length)
    all.set(this.#rest)
    all.set(samples, this.#rest.length)
    let at = 0
    for (; at + this.#frameSamples <= all.length; at += this.#frameSamples) {
      const utterance = this.#take(all.slice(at, at + this.#frameSamples))
      if (utterance) ended.push(utterance)
    }
    this.#rest = all.slice(at)
    return ended
  }

  #take(frame: Int16Array): Utterance | undefined {
    const { threshold, silenceMs, msMax, leadMs, onSpeech } = this.#options
    const level = loudness(frame)
    const isLoud = level >= Math.max(threshold, this.#noise.level * NOISE_FACTOR)
    this.#noise.push(level)
    this.#frames += 1
    this.#loudFrames = isLoud ? this.#loudFrames + 1 : 0
    this.#quietFrames = isLoud ? 0 : this.#quietFrames + 1
    if (this.#sound.length > 0) this.#keep(frame)
    else {
      this.#before.push(frame)
      if (this.#before.length > leadMs / FRAME_MS + SPEECH_FRAMES_MIN) this.#before.shift()
      if (this.#loudFrames < SPEECH_FRAMES_MIN) return undefined
      for (const earlier of this.#before.splice(0)) this.#keep(earlier)
      onSpeech?.()
    }
    const isQuiet = this.#quietFrames * FRAME_MS >= silenceMs
    const isCut = !isQuiet && this.#soundMs >= msMax
    return isQuiet || isCut ? this.#end(isCut) : undefined
  }

  get #soundMs(): number {
    return (this.#sound.length / Int16Array.BYTES_PER_ELEMENT / this.#frameSamples) * FRAME_MS
  }

  #keep({ buffer, byteOffset, byteLength }: Int16Array): void {
    this.#sound.append(new Uint8Array(buffer, byteOffset, byteLength))
  }

  #end(isCut: boolean): Utterance {
    const bytes = Uint8Array.from(this.#sound.bytes())
    const endMs = this.#frames * FRAME_MS
    const beginMs = endMs - this.#soundMs
    this.#sound.clear()
    this.#loudFrames = 0
    this.#quietFrames = 0
    return { samples: new Int16Array(bytes.buffer), isCut, beginMs, endMs }
  }
}

/** Estimates the loudness without speech: the softest tenth of a second of the last seconds, because speech has pauses. */
class NoiseFloor {
  readonly #minima: number[] = []
  #smoothed: number | undefined
  #minimum = Number.POSITIVE_INFINITY
  #frames = 0

  /** 0 before enough samples. */
  get level(): number {
    return this.#minima.length === 0 ? 0 : Math.min(...this.#minima)
  }

  push(loudness: number): void {
    this.#smoothed = this.#smoothed === undefined ? loudness : this.#smoothed + (loudness - this.#smoothed) / NOISE_SMOOTHING_FRAMES
    this.#minimum = Math.min(this.#minimum, this.#smoothed)
    this.#frames += 1
    if (this.#frames % NOISE_BLOCK_FRAMES !== 0) return
    this.#minima.push(this.#minimum)
    if (this.#minima.length > NOISE_BLOCKS) this.#minima.shift()
    this.#minimum = Number.POSITIVE_INFINITY
  }
}

/** Returns the loudness of samples, from 0 to 1: their root mean square. */
export function loudness(samples: Int16Array): number {
  let sum = 0
  for (const sample of samples) sum += sample * sample
  return samples.length === 0 ? 0 : Math.sqrt(sum / samples.length) / 32_768
}
