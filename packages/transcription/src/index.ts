/** Recordings to text, for whichever feature receives them (§2.6 `[transcription]`). */
import { AppError, defineFeature } from '@sluice/sdk'
import { PUBLIC_API_URL, type TranscriptionConfig, transcriptionSection } from './config.ts'
import { transcribe } from './transcribe.ts'

export default defineFeature({
  id: 'transcription',
  section: transcriptionSection,
  build: (host, config) =>
    config.enabled
      ? { services: { transcribe: transcribe(host, config) }, register: async () => checkKey(config) }
      : { off: '`enabled` is false' },
})

function checkKey({ api_key, api_url, command }: TranscriptionConfig): void {
  if (command) return
  const key = api_key?.reveal().trim() ?? ''
  if (key === '' && api_url === PUBLIC_API_URL) {
    throw new AppError('config_invalid', '[transcription] is enabled without api_key (or SVC_TRANSCRIPTION_API_KEY) and without command')
  }
  // `fetch` would quote it in its error.
  if (!/^[\x20-\x7e]*$/.test(key)) throw new AppError('config_invalid', '[transcription] api_key has characters no HTTP header can carry')
}
