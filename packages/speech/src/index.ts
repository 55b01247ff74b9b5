/** The service `speak`, which turns texts into audio for the features that talk to people. See `docs/speech.md`. */
import { AppError, defineFeature, type Host, type Speak } from '@sluice/sdk'
import { speakByCommand } from './command-speaker.ts'
import { type SpeechConfig, speechSection } from './config.ts'
import { speakByService } from './service-speaker.ts'

export default defineFeature({
  id: 'speech',
  section: speechSection,
  build: (host, config) => (config.enabled ? { services: { speak: createSpeak(host, config) } } : { disabledReason: '`enabled` is false' }),
})

/** Uses the command if one is configured, and the service otherwise. */
function createSpeak(host: Host, config: SpeechConfig): Speak {
  const speak = config.command ? speakByCommand(host, config, config.command) : speakByService(host.fetch, config)
  return (text, options) => {
    const spoken = text.trim()
    if (spoken === '') throw new AppError('invalid_request', 'There is no text to speak')
    if (spoken.length > config.max_chars) {
      throw new AppError('invalid_request', `The text to speak is longer than ${config.max_chars} characters; see [speech] max_chars`)
    }
    return speak(spoken, options)
  }
}
