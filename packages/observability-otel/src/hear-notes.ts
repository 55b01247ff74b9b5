/** Hears what the exporter notes beside success and failure: an answer it cannot read, spans the collector rejected. */
import { DiagLogLevel, diag } from '@opentelemetry/api'

export function hearNotes(): { readonly notes: readonly string[]; stop(): void } {
  const notes: string[] = []
  const note = (message: string) => void notes.push(message)
  const ignore = () => {}
  diag.setLogger(
    { error: note, warn: note, info: ignore, debug: ignore, verbose: ignore },
    { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true },
  )
  return { notes, stop: () => diag.disable() }
}
