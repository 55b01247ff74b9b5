/** Recordings to text, for whichever feature receives them (§2.6 `[transcription]`). */
import { defineFeature } from '@sluice/sdk'
import { transcriptionSection } from './config.ts'
import { transcribe } from './transcribe.ts'

export default defineFeature({
  id: 'transcription',
  section: transcriptionSection,
  build: (host, config) => (config.enabled ? { services: { transcribe: transcribe(host, config) } } : { off: '`enabled` is false' }),
})
