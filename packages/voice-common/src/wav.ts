/** Writes WAV files of 16-bit samples with one channel, the format that every recogniser reads. */

const HEADER_BYTES = 44
const PCM = 1
const SAMPLE_BYTES = 2

/** Returns a WAV file with the samples; `rate` is how many make a second. */
export function toWav(samples: Int16Array, rate: number): Uint8Array {
  const file = Buffer.alloc(HEADER_BYTES + samples.length * SAMPLE_BYTES)
  file.write('RIFF', 0, 'latin1')
  file.writeUInt32LE(file.length - 8, 4)
  file.write('WAVEfmt ', 8, 'latin1')
  file.writeUInt32LE(16, 16)
  file.writeUInt16LE(PCM, 20)
  file.writeUInt16LE(1, 22)
  file.writeUInt32LE(rate, 24)
  file.writeUInt32LE(rate * SAMPLE_BYTES, 28)
  file.writeUInt16LE(SAMPLE_BYTES, 32)
  file.writeUInt16LE(SAMPLE_BYTES * 8, 34)
  file.write('data', 36, 'latin1')
  file.writeUInt32LE(samples.length * SAMPLE_BYTES, 40)
  samples.forEach((sample, at) => void file.writeInt16LE(sample, HEADER_BYTES + at * SAMPLE_BYTES))
  return file
}
