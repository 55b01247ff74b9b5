/** Cuts the sound of a microphone into utterances by its loudness. Pure: time is the number of samples. */
import { ByteBuffer } from '@sluice/kit'

export const SAMPLE_RATE = 16_000
const SAMPLE_BYTES = 2
/** The loudness is measured for pieces of this length. */
const FRAME_SAMPLES = SAMPLE_RATE / 50
const FRAME_BYTES = FRAME_SAMPLES * SAMPLE_BYTES
const FRAME_MS = 20
/** The beginning of a word is softer than the threshold. */
export const PRE_ROLL_MS = 500
/** A click is shorter than any word. */
const SPEECH_MS_MIN = 100
/** Speech is so much louder than steady noise, such as a fan. */
const NOISE_FACTOR = 2
const NOISE_SMOOTHING_FRAMES = 5
const NOISE_BLOCK_FRAMES = 25
const NOISE_BLOCKS = 12

export interface UtteranceOptions {
  readonly energyThreshold: number
  readonly silenceTimeoutMs: number
  readonly maxCaptureMs: number
}

/** One utterance, with half a second of sound before it and the silence that ended it. */
export interface Utterance {
  /** Samples of 16 bits, little endian, one channel, 16,000 in a second. */
  readonly pcm: Uint8Array
  /** How long it was loud. */
  readonly speechMs: number
  /** It was as long as allowed, so the rest of it is missing. */
  readonly isCut: boolean
  /** Milliseconds of sound from the start of the recorder to its beginning and to its end. */
  readonly beginMs: number
  readonly endMs: number
}

export class Utterances {
  readonly #options: UtteranceOptions
  readonly #noise = new NoiseFloor()
  /** Bytes that are not a whole frame yet. */
  #rest: Uint8Array = new Uint8Array()
  /** The last frames before an utterance. */
  readonly #before: Uint8Array[] = []
  /** The utterance that has begun. */
  readonly #sound = new ByteBuffer()
  #loudFrames = 0
  #silentFrames = 0
  #frames = 0

  constructor(options: UtteranceOptions) {
    this.#options = options
  }

  /** The milliseconds of sound until now. */
  get timeMs(): number {
    return this.#frames * FRAME_MS
  }

  /** Takes the next bytes of the recorder. Returns the utterances that they end. */
  push(bytes: Uint8Array): Utterance[] {
    const ended: Utterance[] = []
    const all = Buffer.concat([this.#rest, bytes])
    let at = 0
    for (; at + FRAME_BYTES <= all.length; at += FRAME_BYTES) {
      const utterance = this.#frame(all.subarray(at, at + FRAME_BYTES))
      if (utterance) ended.push(utterance)
    }
    this.#rest = all.subarray(at)
    return ended
  }

  #frame(frame: Uint8Array): Utterance | undefined {
    this.#frames += 1
    const loudness = rms(frame)
    const { level } = this.#noise
    const isLoud = level !== undefined && loudness >= Math.max(this.#options.energyThreshold, level * NOISE_FACTOR)
    this.#noise.push(loudness)
    if (this.#sound.length === 0) {
      if (!isLoud) {
        this.#before.push(frame)
        if (this.#before.length > PRE_ROLL_MS / FRAME_MS) this.#before.shift()
        return undefined
      }
      // The first piece must be a copy: the buffer keeps it, and the frame is a part of a larger block.
      for (const earlier of this.#before.splice(0)) this.#sound.append(Uint8Array.from(earlier))
    }
    this.#sound.append(Uint8Array.from(frame))
    this.#loudFrames += isLoud ? 1 : 0
    this.#silentFrames = isLoud ? 0 : this.#silentFrames + 1
    const isSilent = this.#silentFrames * FRAME_MS >= this.#options.silenceTimeoutMs
    const isCut = !isSilent && this.#sound.length >= (this.#options.maxCaptureMs / FRAME_MS) * FRAME_BYTES
    return isSilent || isCut ? this.#end(isCut) : undefined
  }

  #end(isCut: boolean): Utterance | undefined {
    const speechMs = this.#loudFrames * FRAME_MS
    const pcm = Uint8Array.from(this.#sound.bytes())
    const endMs = this.timeMs
    const beginMs = endMs - (pcm.length / FRAME_BYTES) * FRAME_MS
    this.#sound.clear()
    this.#loudFrames = 0
    this.#silentFrames = 0
    return speechMs >= SPEECH_MS_MIN ? { pcm, speechMs, isCut, beginMs, endMs } : undefined
  }
}

/** Estimates how loud it is while nobody speaks: the softest tenth of a second of the last seconds, because speech has pauses. */
class NoiseFloor {
  readonly #minima: number[] = []
  #smoothed: number | undefined
  #minimum = Number.POSITIVE_INFINITY
  #frames = 0

  /** Undefined until enough was heard. */
  get level(): number | undefined {
    return this.#minima.length === 0 ? undefined : Math.min(...this.#minima)
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

/** Returns the root mean square of samples between -1 and 1. */
export function rms(frame: Uint8Array): number {
  const view = new DataView(frame.buffer, frame.byteOffset, frame.byteLength)
  const samples = Math.floor(frame.byteLength / SAMPLE_BYTES)
  let sum = 0
  for (let index = 0; index < samples; index += 1) sum += (view.getInt16(index * SAMPLE_BYTES, true) / 32_768) ** 2
  return samples === 0 ? 0 : Math.sqrt(sum / samples)
}

/** Returns a WAV file of the samples. */
export function wavOf(pcm: Uint8Array): Uint8Array {
  const header = Buffer.alloc(44)
  header.write('RIFF', 0, 'latin1')
  header.writeUInt32LE(36 + pcm.length, 4)
  header.write('WAVEfmt ', 8, 'latin1')
  header.writeUInt32LE(16, 16)
  header.writeUInt16LE(1, 20)
  header.writeUInt16LE(1, 22)
  header.writeUInt32LE(SAMPLE_RATE, 24)
  header.writeUInt32LE(SAMPLE_RATE * SAMPLE_BYTES, 28)
  header.writeUInt16LE(SAMPLE_BYTES, 32)
  header.writeUInt16LE(SAMPLE_BYTES * 8, 34)
  header.write('data', 36, 'latin1')
  header.writeUInt32LE(pcm.length, 40)
  return new Uint8Array(Buffer.concat([header, pcm]))
}
