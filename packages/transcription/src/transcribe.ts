/** The service `transcribe`: checks a recording and has it written down, by the command if there is one. */
import { AppError, type Host, type Transcribe } from '@sluice/sdk'
import { byCommand } from './by-command.ts'
import { byService } from './by-service.ts'
import type { TranscriptionConfig } from './config.ts'
import { recordingName } from './recording.ts'

const MIB = 1_048_576

export function transcribe(host: Host, config: TranscriptionConfig): Transcribe {
  const { command, max_mb, timeout_secs } = config
  const transcriber = command ? byCommand(host, { command, timeoutMs: timeout_secs * 1000 }) : byService(host, config)
  return async ({ bytes, name, mime }, { signal }) => {
    if (bytes.length === 0) throw new AppError('invalid_request', 'the recording is empty')
    if (bytes.length > max_mb * MIB) throw new AppError('invalid_request', `the recording is larger than ${max_mb} MiB`)
    const type = mime === undefined ? {} : { mime }
    return (await transcriber({ bytes, fileName: recordingName({ name, ...type }), ...type }, signal)).trim()
  }
}
