/** A recording on its way to whoever writes it down. */

export interface Recording {
  readonly bytes: Uint8Array
  /** Its ending tells the format; nothing else in it comes from the sender. */
  readonly fileName: string
  readonly mime?: string
}

/** Turns a recording into text; throws what `Transcribe` promises. */
export type Transcriber = (recording: Recording, signal: AbortSignal) => Promise<string>

const SUBTYPE = /^(?:audio|video)\/(?:x-)?([a-z0-9]{1,8})\s*(?:;|$)/i
const ENDING = /\.([a-z0-9]{1,8})$/i

/** From the media type, else from the name the sender gave it. */
export function recordingName({ name, mime = '' }: { readonly name: string; readonly mime?: string }): string {
  const format = (SUBTYPE.exec(mime)?.[1] ?? ENDING.exec(name)?.[1] ?? 'ogg').toLowerCase()
  // Services that take Opus know it by its container.
  return `recording.${format === 'opus' ? 'ogg' : format}`
}
