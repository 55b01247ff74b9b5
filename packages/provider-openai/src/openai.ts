/** The provider `[provider] kind = "openai"`: OpenAI, or the compatible service at `base_url`. */
import { Secret } from '@sluice/sdk'
import { chatCompletions } from './chat-completions.ts'

const BASE_URL = 'https://api.openai.com/v1'
/** The model used when the environment has a key and names no model. */
const DETECTED_MODEL = 'gpt-5.4-mini'

export const openai = chatCompletions('openai', {
  baseUrl: BASE_URL,
  isKeyRequired: true,
  detect({ OPENAI_API_KEY, OPENAI_BASE_URL, OPENAI_MODEL }) {
    if (!OPENAI_API_KEY) return undefined
    return {
      kind: 'openai',
      base_url: OPENAI_BASE_URL || undefined,
      api_key: new Secret(OPENAI_API_KEY),
      model: OPENAI_MODEL || DETECTED_MODEL,
    }
  },
})
