/** A WAV file with a tone, for tests. */

const RATE = 24_000
const HZ = 440
const AMPLITUDE = 12_000
const HEADER_BYTES = 44

/** Returns mono 16-bit PCM of `ms` milliseconds at `rate` samples a second. */
export function toneWav(ms: number, rate = RATE): Buffer {
  const samples = Math.round((ms / 1000) * rate)
  const file = Buffer.alloc(HEADER_BYTES + samples * 2)
  file.write('RIFF', 0, 'latin1')
  file.writeUInt32LE(file.length - 8, 4)
  file.write('WAVEfmt ', 8, 'latin1')
  file.writeUInt32LE(16, 16)
  file.writeUInt16LE(1, 20) // PCM
  file.writeUInt16LE(1, 22) // one channel
  file.writeUInt32LE(rate, 24)
  file.writeUInt32LE(rate * 2, 28)
  file.writeUInt16LE(2, 32)
  file.writeUInt16LE(16, 34)
  file.write('data', 36, 'latin1')
  file.writeUInt32LE(samples * 2, 40)
  for (let at = 0; at < samples; at++)
    file.writeInt16LE(Math.round(AMPLITUDE * Math.sin((2 * Math.PI * HZ * at) / rate)), HEADER_BYTES + at * 2)
  return file
}
