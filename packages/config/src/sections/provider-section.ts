/** The keys of a model: `[provider]`, its fallbacks, and the model of one agent. */
import { fromEnv, headerSecret, httpUrl, MEDIA_KINDS, whole } from '@sluice/sdk'
import * as v from 'valibot'

const text = v.pipe(v.string(), v.minLength(1))

export const KIND =
  'Provider of the model: openai, anthropic, ollama, groq, cerebras, deepseek, mistral, xai, together, openrouter, google, azure, bedrock, lmstudio, vllm, llamacpp or offline; openai with a base_url is any OpenAI-compatible server'
export const BASE_URL = "Address of the endpoint; the provider's own by default"
export const MODEL = 'Name of the model'
export const headers = v.pipe(v.record(v.string(), headerSecret()), v.description('Further request headers'))

/** The settings of one endpoint: its requests, and the limits of `[agent]` that it overrides. */
export const endpointKeys = {
  options: v.optional(
    v.pipe(
      v.record(v.string(), v.unknown()),
      v.description('Members added to the body of each request, as the API of the provider names them; tables are merged'),
    ),
  ),
  tools: v.optional(v.pipe(v.boolean(), v.description('Whether the model is offered tools (default: true)'))),
  reasoning_effort: v.optional(
    v.pipe(
      v.picklist(['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max']),
      v.description("How much the model reasons (default: the provider's own)"),
    ),
  ),
  prompt_cache: v.optional(
    v.pipe(
      v.boolean(),
      v.description('Whether Anthropic keeps the conversation for five minutes, so that it costs less again (default: true)'),
    ),
  ),
  media: v.optional(
    v.pipe(
      v.array(v.picklist(MEDIA_KINDS)),
      v.description(
        'Files of messages that the model gets itself, not only their paths (default: image and pdf at OpenAI and Anthropic, and audio too at Google)',
      ),
    ),
  ),
  context_window: v.optional(
    v.pipe(
      whole(1000, 100_000_000),
      v.description(
        'The number of tokens that a request and its reply may have together (default: what the endpoint lists, else by the name of the model, else 32000)',
      ),
    ),
  ),
  max_output_tokens: v.optional(v.pipe(whole(1, 1_000_000), v.description('Overrides [agent] max_output_tokens'))),
  max_history_tokens: v.optional(v.pipe(whole(100, 10_000_000), v.description('Overrides [agent] max_history_tokens'))),
  model_timeout_secs: v.optional(v.pipe(whole(1, 3600), v.description('Overrides [agent] model_timeout_secs'))),
  max_retries: v.optional(v.pipe(whole(0, 10), v.description('Overrides [agent] max_retries'))),
  temperature: v.optional(v.pipe(v.number(), v.minValue(0), v.maxValue(2), v.description('Overrides [agent] temperature'))),
}

/** One endpoint with its model. */
export const providerEndpoint = v.object({
  kind: v.pipe(text, v.description(KIND)),
  base_url: v.optional(v.pipe(httpUrl(), v.description(BASE_URL))),
  api_key: v.optional(v.pipe(headerSecret(), v.description('Key of the endpoint'))),
  model: v.optional(v.pipe(text, v.description(MODEL))),
  headers: v.optional(headers),
  ...endpointKeys,
})

const withoutKind = (key: string): string =>
  `${key} is set without kind: set provider.kind in the same step, to openai, anthropic or another kind`

/** `[provider]`: the model. Without `kind`, a provider whose key is in the environment is used, else the offline one. */
export const providerSection = {
  path: 'provider',
  schema: v.pipe(
    v.object({
      kind: v.optional(
        v.pipe(text, fromEnv('SVC_PROVIDER_KIND'), v.description(`${KIND}; by default the one whose key is in the environment`)),
      ),
      base_url: v.optional(v.pipe(httpUrl(), fromEnv('SVC_PROVIDER_BASE_URL'), v.description(BASE_URL))),
      api_key: v.optional(v.pipe(headerSecret({ env: ['SVC_PROVIDER_API_KEY'], envWins: true }), v.description('Key of the endpoint'))),
      model: v.optional(v.pipe(text, fromEnv('SVC_PROVIDER_MODEL'), v.description(MODEL))),
      headers: v.optional(headers),
      ...endpointKeys,
      fallback: v.optional(
        v.pipe(v.array(providerEndpoint), v.maxLength(8), v.description('Further models, used in this order when the one before fails')),
        [],
      ),
    }),
    v.check(({ kind, api_key }) => kind !== undefined || api_key === undefined, withoutKind('api_key')),
    v.check(({ kind, base_url }) => kind !== undefined || base_url === undefined, withoutKind('base_url')),
  ),
} as const

export type ProviderConfig = v.InferOutput<typeof providerSection.schema>
