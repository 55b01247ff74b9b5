/** The provider `[provider] kind = "openai"`: OpenAI through the Responses API, or the compatible service at `base_url`. */
import { type Provider, Secret } from '@sluice/sdk'
import { chatCompletions, endpointOf, loadChatModel } from './chat-completions.ts'
import type { Preset } from './presets.ts'

const PRESET = { baseUrl: 'https://api.openai.com/v1', keyVariable: 'OPENAI_API_KEY' } as const satisfies Preset
/** The model used when the environment has a key and names no model. */
const DETECTED_MODEL = 'gpt-5.4-mini'

/** `api.openai.com` and the hosts of its regions, such as `eu.api.openai.com`. */
const OWN_HOST = /(?:^|\.)api\.openai\.com$/

const isOwn = (url: string): boolean => OWN_HOST.test(URL.parse(url)?.hostname ?? '')

export const openai: Provider = {
  ...chatCompletions('openai', PRESET, ({ OPENAI_API_KEY, OPENAI_BASE_URL, OPENAI_MODEL }) => {
    if (!OPENAI_API_KEY) return undefined
    return {
      kind: 'openai',
      base_url: OPENAI_BASE_URL || undefined,
      api_key: new Secret(OPENAI_API_KEY),
      model: OPENAI_MODEL || DETECTED_MODEL,
    }
  }),
  usual: { ...PRESET, model: DETECTED_MODEL },
  media: ({ base_url = PRESET.baseUrl }) => (isOwn(base_url) ? ['image', 'pdf'] : []),
  async load(settings, options) {
    const endpoint = endpointOf(settings, PRESET, options.fetch)
    if (!isOwn(endpoint.baseUrl)) return loadChatModel('openai', PRESET, endpoint, options)
    // The newer models refuse tools on chat completions.
    const { responsesModel } = await import('./responses-model.ts')
    return responsesModel(endpoint)
  },
}
