/** The services with the chat completions API, as data: where they are, where their key is, and how their requests differ. */

import type { MediaKind } from '@sluice/sdk'

export interface Preset {
  /** The base URL when the settings name none. Absent for services whose address contains a region or an account. */
  readonly baseUrl?: string
  /** The environment variable of the key. Absent for servers that usually need no key. */
  readonly keyVariable?: string
  /** The member that limits the tokens of a reply; default `max_tokens`. */
  readonly limit?: 'max_completion_tokens'
  /** True when the service has the Responses API at base URLs that end in `/openai/v1`. */
  readonly hasResponses?: boolean
  /** The kinds of files that all current models of the service read. */
  readonly media?: readonly MediaKind[]
  /** Whether the service refuses a message with tool calls that has no `reasoning_content`. */
  readonly needsReasoning?: boolean
  /** Members of a request that the service refuses. */
  readonly refuses?: readonly string[]
}

/**
 * Sources: the API reference of each service. Groq and xAI deprecate `max_tokens`; Cerebras documents only
 * `max_completion_tokens`. Mistral answers 422 `extra_forbidden` to `stream_options` and always counts the tokens of a stream.
 * DeepSeek thinks by default and wants its reasoning back: https://api-docs.deepseek.com/guides/thinking_mode.
 */
export const PRESETS = {
  groq: { baseUrl: 'https://api.groq.com/openai/v1', keyVariable: 'GROQ_API_KEY', limit: 'max_completion_tokens' },
  cerebras: { baseUrl: 'https://api.cerebras.ai/v1', keyVariable: 'CEREBRAS_API_KEY', limit: 'max_completion_tokens' },
  deepseek: { baseUrl: 'https://api.deepseek.com/v1', keyVariable: 'DEEPSEEK_API_KEY', needsReasoning: true },
  mistral: { baseUrl: 'https://api.mistral.ai/v1', keyVariable: 'MISTRAL_API_KEY', refuses: ['stream_options'] },
  xai: { baseUrl: 'https://api.x.ai/v1', keyVariable: 'XAI_API_KEY', limit: 'max_completion_tokens' },
  together: { baseUrl: 'https://api.together.xyz/v1', keyVariable: 'TOGETHER_API_KEY' },
  openrouter: { baseUrl: 'https://openrouter.ai/api/v1', keyVariable: 'OPENROUTER_API_KEY' },
  // https://learn.microsoft.com/azure/ai-foundry/openai/api-version-lifecycle
  azure: { keyVariable: 'AZURE_OPENAI_API_KEY', hasResponses: true },
  // https://docs.aws.amazon.com/bedrock/latest/userguide/models-api-compatibility.html
  bedrock: { keyVariable: 'AWS_BEARER_TOKEN_BEDROCK', hasResponses: true },
  lmstudio: { baseUrl: 'http://127.0.0.1:1234/v1' },
  vllm: { baseUrl: 'http://127.0.0.1:8000/v1' },
  llamacpp: { baseUrl: 'http://127.0.0.1:8080/v1' },
} as const satisfies Readonly<Record<string, Preset>>
