/** The service `transcribe`, which turns recordings into text for the features that receive them. See `docs/transcription.md`. */
import { AppError, defineFeature, type Host, type Transcribe } from '@sluice/sdk'
import { CommandTranscriber } from './command-transcriber.ts'
import { type TranscriptionConfig, transcriptionSection } from './config.ts'
import { recordingName, type Transcriber } from './recording.ts'
import { ServiceTranscriber } from './service-transcriber.ts'

const MIB = 1_048_576

export default defineFeature({
  id: 'transcription',
  section: transcriptionSection,
  build: (host, config) =>
    config.enabled ? { services: { transcribe: createTranscribe(host, config) } } : { disabledReason: '`enabled` is false' },
})

/** Uses the command if one is configured, and the service otherwise. */
function createTranscribe(host: Host, config: TranscriptionConfig): Transcribe {
  const { command, max_mb, timeout_secs } = config
  const transcriber: Transcriber = command
    ? new CommandTranscriber(host, command, timeout_secs * 1000)
    : new ServiceTranscriber(host.fetch, config)
  return async ({ bytes, name, mime }, options) => {
    if (bytes.length === 0) throw new AppError('invalid_request', 'The recording is empty')
    if (bytes.length > max_mb * MIB) throw new AppError('invalid_request', `The recording is larger than ${max_mb} MiB; see max_mb`)
    const fileName = recordingName(name, mime)
    const text = await transcriber.transcribe({ bytes, fileName, ...(mime !== undefined && { mime }) }, options)
    return text.trim()
  }
}
