/** The formats of audio, and the limit for one text. */
import { AppError, type SpokenFormat } from '@sluice/sdk'

/** Twenty minutes at 16 bits and 24 kHz. */
export const AUDIO_BYTES_MAX = 64 * 1024 * 1024

export const MEDIA_TYPES: Readonly<Record<SpokenFormat, string>> = { wav: 'audio/wav', ogg: 'audio/ogg; codecs=opus' }

const MAGIC: Readonly<Record<SpokenFormat, string>> = { wav: 'RIFF', ogg: 'OggS' }

/** Throws `unavailable` unless the bytes begin as files of the format do. `speaker` names their source. */
export function checkFormat(bytes: Uint8Array, format: SpokenFormat, speaker: string): void {
  const head = Buffer.from(bytes.subarray(0, MAGIC[format].length)).toString('latin1')
  if (head !== MAGIC[format]) throw new AppError('unavailable', `${speaker} returned no audio in the format ${format}`)
}
