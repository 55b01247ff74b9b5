/** Audio of telephone calls: μ-law at 8,000 samples a second, and the PCM that recognisers and speakers use. */
import { AppError } from '@sluice/sdk'

/** Samples a second of a call. */
export const RATE = 8000

const BIAS = 0x84
const CLIP = 32_635
const PCM = 1
/** The part of the bandwidth of a call that is kept whole. */
const PASS_BAND = 0.94
const ZERO_CROSSINGS = 24
/** The format of files with more than two channels or 16 bits. Its first format is in the extension. */
const EXTENSIBLE = 0xfffe

/** The linear value of each μ-law byte (ITU-T G.711). */
const LINEAR = Int16Array.from({ length: 256 }, (_, byte) => {
  const code = ~byte & 0xff
  const magnitude = ((((code & 0x0f) << 3) + BIAS) << ((code & 0x70) >> 4)) - BIAS
  return code & 0x80 ? -magnitude : magnitude
})

export const fromMulaw = (bytes: Uint8Array): Int16Array => Int16Array.from(bytes, (byte) => LINEAR[byte] ?? 0)

export const toMulaw = (samples: Int16Array): Uint8Array => Uint8Array.from(samples, encode)

function encode(sample: number): number {
  const sign = sample < 0 ? 0x80 : 0
  const magnitude = Math.min(Math.abs(sample), CLIP) + BIAS
  const exponent = Math.max(0, 24 - Math.clz32(magnitude))
  const mantissa = (magnitude >> (exponent + 3)) & 0x0f
  return ~(sign | (exponent << 4) | mantissa) & 0xff
}

/** Returns the samples of a WAV file with 16-bit PCM as a call carries them. Throws `unavailable` for another file. */
export function fromWav(file: Uint8Array): Int16Array {
  const bytes = Buffer.from(file.buffer, file.byteOffset, file.byteLength)
  let format: { readonly channels: number; readonly rate: number } | undefined
  for (let at = 12; at + 8 <= bytes.length; ) {
    const name = bytes.toString('latin1', at, at + 4)
    // A program that writes to a pipe does not know the size beforehand, and writes a size that is too large.
    const size = Math.min(bytes.readUInt32LE(at + 4), bytes.length - at - 8)
    const chunk = bytes.subarray(at + 8, at + 8 + size)
    if (name === 'fmt ' && size >= 16) format = formatOf(chunk)
    if (name === 'data' && format) return toRate(mono(chunk, format.channels), format.rate)
    at += 8 + size + (size % 2)
  }
  throw new AppError('unavailable', 'The spoken audio is not a WAV file with 16-bit PCM')
}

function formatOf(chunk: Buffer): { channels: number; rate: number } {
  const [tag, channels, rate, bits] = [chunk.readUInt16LE(0), chunk.readUInt16LE(2), chunk.readUInt32LE(4), chunk.readUInt16LE(14)]
  if ((tag !== PCM && tag !== EXTENSIBLE) || bits !== 16 || channels < 1 || rate < 1000)
    throw new AppError('unavailable', `The spoken audio has ${bits} bits, ${channels} channels and the format ${tag}; 16-bit PCM is needed`)
  return { channels, rate }
}

function mono(data: Buffer, channels: number): Float32Array {
  const samples = new Float32Array(Math.floor(data.length / 2 / channels))
  for (let at = 0; at < samples.length; at++) {
    let sum = 0
    for (let channel = 0; channel < channels; channel++) sum += data.readInt16LE((at * channels + channel) * 2)
    samples[at] = sum / channels
  }
  return samples
}

/**
 * Resamples with a windowed sinc. It keeps the sounds below 3.6 kHz, and removes those above 4 kHz, which would come back as other sounds
 * and make words unintelligible.
 */
function toRate(samples: Float32Array, rate: number): Int16Array {
  if (rate === RATE) return Int16Array.from(samples, Math.round)
  const step = rate / RATE
  const kernels = kernelsFor(rate)
  const out = new Int16Array(Math.floor(samples.length / step))
  for (let at = 0; at < out.length; at++) {
    const kernel = kernels[at % kernels.length] ?? new Float32Array()
    const first = Math.floor(at * step) - kernel.length / 2 + 1
    let sum = 0
    for (let tap = 0; tap < kernel.length; tap++) sum += (samples[first + tap] ?? 0) * (kernel[tap] ?? 0)
    out[at] = Math.max(-32_768, Math.min(32_767, Math.round(sum)))
  }
  return out
}

/** One kernel for each position between two samples of the file that a sample of the call can have. */
function kernelsFor(rate: number): readonly Float32Array[] {
  const cutoff = (0.5 * PASS_BAND * Math.min(rate, RATE)) / rate
  const half = Math.ceil((ZERO_CROSSINGS * Math.max(rate, RATE)) / RATE)
  return Array.from({ length: RATE / divisor(rate, RATE) }, (_, phase) => {
    const offset = ((phase * rate) / RATE) % 1
    const kernel = Float32Array.from({ length: 2 * half }, (_, tap) => {
      const distance = tap - half + 1 - offset
      const window = 0.5 + 0.5 * Math.cos((Math.PI * distance) / (half + 1))
      return window * (distance === 0 ? 2 * cutoff : Math.sin(2 * Math.PI * cutoff * distance) / (Math.PI * distance))
    })
    const gain = kernel.reduce((sum, value) => sum + value, 0)
    return kernel.map((value) => value / gain)
  })
}

const divisor = (a: number, b: number): number => (b === 0 ? a : divisor(b, a % b))
