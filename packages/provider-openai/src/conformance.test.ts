import { Secret } from '@sluice/sdk'
import { CHAT_DIALECTS } from '@sluice/testkit/model-server'
import { providerConformance } from '@sluice/testkit/provider'
import { expect } from 'vitest'
import feature from './index.ts'
import { PRESETS } from './presets.ts'

providerConformance({
  feature,
  settings: [
    ({ url, apiKey }) => ({ kind: 'openai', base_url: `${url}/v1`, api_key: new Secret(apiKey), model: 'small' }),
    ({ url, apiKey }) => ({ kind: 'ollama', base_url: `${url}/v1/`, api_key: new Secret(apiKey), model: 'llama3.2' }),
    ...Object.keys(PRESETS).map((kind) => ({ url, apiKey }: { readonly url: string; readonly apiKey: string }) => ({
      kind,
      base_url: `${url}${kind in CHAT_DIALECTS ? `/${kind}` : ''}/v1`,
      api_key: new Secret(apiKey),
      model: 'small',
    })),
  ],
  invalid: [
    { settings: { kind: 'openai', api_key: new Secret('key') }, names: 'model' },
    { settings: { kind: 'ollama' }, names: 'model' },
    { settings: { kind: 'groq', model: 'small' }, names: 'api_key' },
    { settings: { kind: 'vllm' }, names: 'model' },
    { settings: { kind: 'azure', model: 'small', api_key: new Secret('key') }, names: 'base_url' },
    { settings: { kind: 'openai', model: 'small', base_url: 'localhost:1234' }, names: 'base_url' },
    { settings: { kind: 'openai', model: 'small', api_key: new Secret('two\nlines') }, names: 'api_key' },
  ],
  detects: [
    { env: { OPENAI_API_KEY: 'key' }, finds: { kind: 'openai', model: expect.stringMatching(/^gpt-/), base_url: undefined } },
    {
      env: { OPENAI_API_KEY: 'key', OPENAI_BASE_URL: 'http://127.0.0.1:8000/v1', OPENAI_MODEL: 'mine' },
      finds: { kind: 'openai', model: 'mine', base_url: 'http://127.0.0.1:8000/v1' },
    },
    { env: { OLLAMA_HOST: '10.0.0.7' }, finds: { kind: 'ollama', base_url: 'http://10.0.0.7:11434/v1' } },
    { env: { OLLAMA_HOST: '10.0.0.7', OLLAMA_MODEL: 'qwen3' }, finds: { kind: 'ollama', model: 'qwen3' } },
  ],
})
