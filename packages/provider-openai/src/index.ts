/** Adds the providers for OpenAI, for the services of `presets.ts`, and for any compatible server. */
import { defineFeature } from '@sluice/sdk'
import { chatCompletions } from './chat-completions.ts'
import { ollama } from './ollama.ts'
import { openai } from './openai.ts'
import { PRESETS } from './presets.ts'

export default defineFeature({
  id: 'provider-openai',
  build: () => ({ providers: [openai, ollama, ...Object.entries(PRESETS).map(([kind, preset]) => chatCompletions(kind, preset))] }),
})
