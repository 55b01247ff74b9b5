/** Models behind any endpoint that speaks chat completions: OpenAI, Ollama, and whatever copies the format. */
import { defineFeature } from '@sluice/sdk'
import { ollama } from './ollama.ts'
import { openai } from './openai.ts'

export default defineFeature({
  id: 'provider-openai',
  build: () => ({ providers: [openai, ollama] }),
})
