/** Speaks with a program of the operator, which runs in the sandbox and writes an audio file. */
import { runInFolder } from '@sluice/kit'
import { AppError, type Host, type Speak } from '@sluice/sdk'
import { AUDIO_BYTES_MAX, checkFormat, MEDIA_TYPES } from './audio.ts'
import { FILE, type SpeechConfig, TEXT } from './config.ts'

const TEXT_FILE = 'text.txt'

export function speakByCommand(host: Host, config: SpeechConfig, [program = '', ...args]: readonly string[]): Speak {
  const { command_format: format, timeout_secs } = config
  const file = `speech.${format}`
  const command = [program, ...args.map((arg) => arg.replaceAll(TEXT, TEXT_FILE).replaceAll(FILE, file))]
  return (text, { formats, workspace, signal }) => {
    if (!formats.includes(format)) {
      throw new AppError(
        'invalid_request',
        `The command of [speech] writes ${format}, and ${formats.join(' or ')} is needed; see command_format`,
      )
    }
    const files = { [TEXT_FILE]: Buffer.from(text) }
    const run = { command, name: 'speech', files, workspace, timeoutMs: timeout_secs * 1000, signal }
    return runInFolder(host, run, async (folder) => {
      const bytes = await folder.read(file, { bytesMax: AUDIO_BYTES_MAX }).catch((error: unknown) => {
        const isMissing = error instanceof AppError && error.code === 'not_found'
        throw isMissing ? new AppError('unavailable', `'${program}' wrote no file; its arguments must name ${FILE}`) : error
      })
      checkFormat(bytes, format, `'${program}'`)
      return { bytes, format, mime: MEDIA_TYPES[format] }
    })
  }
}
