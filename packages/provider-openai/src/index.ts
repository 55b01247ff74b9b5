/** Adds the providers for chat completions endpoints: OpenAI, Ollama, and any compatible server. */
import { defineFeature } from '@sluice/sdk'
import { ollama } from './ollama.ts'
import { openai } from './openai.ts'

export default defineFeature({
  id: 'provider-openai',
  build: () => ({ providers: [openai, ollama] }),
})
