/** `[provider] kind = "openai"`: OpenAI itself, or any service named by `base_url`. */
import { type Provider, Secret } from '@sluice/sdk'
import { loadModel } from './load-model.ts'

const BASE_URL = 'https://api.openai.com/v1'
/** Taken when the environment offers a key and names no model. */
const DETECTED_MODEL = 'gpt-5.4-mini'

export const openai: Provider = {
  kinds: ['openai'],
  detect({ OPENAI_API_KEY, OPENAI_BASE_URL, OPENAI_MODEL }) {
    if (!OPENAI_API_KEY) return undefined
    return {
      kind: 'openai',
      base_url: OPENAI_BASE_URL || undefined,
      api_key: new Secret(OPENAI_API_KEY),
      model: OPENAI_MODEL || DETECTED_MODEL,
    }
  },
  load: (settings, { fetch }) => loadModel(settings, { baseUrl: BASE_URL, fetch }),
}
