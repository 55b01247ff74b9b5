/** A recording, and the interface of the ways to transcribe it. */
import { AppError, type Transcribe } from '@sluice/sdk'

export interface Recording {
  readonly bytes: Uint8Array
  /** Its extension names the format. No other part of the name comes from the sender. */
  readonly fileName: string
  readonly mime?: string
}

export type TranscribeOptions = Parameters<Transcribe>[1]

export interface Transcriber {
  /**
   * Returns the text of a recording. Throws as `Transcribe` does: `invalid_request` if another attempt would fail too,
   * `unavailable` if it may succeed.
   */
  transcribe(recording: Recording, options: TranscribeOptions): Promise<string>
}

const SUBTYPE = /^(?:audio|video)\/(?:x-)?([a-z0-9]{1,8})\s*(?:;|$)/i
const EXTENSION = /\.([a-z0-9]{1,8})$/i

/** Returns a file name with the extension of the media type, or else of the sender's file name. */
export function recordingName(name: string, mime = ''): string {
  const format = (SUBTYPE.exec(mime)?.[1] ?? EXTENSION.exec(name)?.[1] ?? 'ogg').toLowerCase()
  // Services that accept Opus recognize it by the extension of its container.
  return `recording.${format === 'opus' ? 'ogg' : format}`
}

/**
 * Turns every failure but `invalid_request` and `aborted` into `unavailable`. The operator can correct a refused key, a missing
 * program or a full disk, and a transcription changes nothing, so it can be repeated.
 */
export function permanentOrUnavailable(error: unknown): unknown {
  if (!(error instanceof AppError) || error.code === 'aborted' || error.code === 'invalid_request') return error
  const { retryAfterSecs } = error
  return new AppError('unavailable', error.message, { cause: error, ...(retryAfterSecs !== undefined && { retryAfterSecs }) })
}
