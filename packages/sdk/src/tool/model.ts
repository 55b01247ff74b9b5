/** The port of language models: the interface of the AI SDK, so that its provider packages fit unchanged. */
import type { LanguageModelV4, LanguageModelV4CallOptions as ModelCallOptions } from '@ai-sdk/provider'
import { sha256Hex } from '../values/hmac.ts'
import type { Secret } from '../values/secret.ts'

/** The key of the options that the agent gives to every model. */
const OPTIONS = 'sluice'
const CACHE_KEY_DIGITS = 32

/** Returns the option that names the conversation of a request for the prompt cache of its service. */
export const promptCacheKey = (session: string) => ({ [OPTIONS]: { promptCacheKey: sha256Hex(session).slice(0, CACHE_KEY_DIGITS) } })

/** Reads the option of `promptCacheKey`. */
export function promptCacheKeyIn({ providerOptions }: Pick<ModelCallOptions, 'providerOptions'>): string | undefined {
  const key = providerOptions?.[OPTIONS]?.promptCacheKey
  return typeof key === 'string' ? key : undefined
}

export type LanguageModel = LanguageModelV4
export type {
  LanguageModelV4CallOptions as ModelCallOptions,
  LanguageModelV4FinishReason as ModelFinishReason,
  LanguageModelV4FunctionTool as ModelTool,
  LanguageModelV4GenerateResult as ModelGenerateResult,
  LanguageModelV4Message as ModelMessage,
  LanguageModelV4Prompt as ModelPrompt,
  LanguageModelV4StreamPart as ModelStreamPart,
  LanguageModelV4StreamResult as ModelStreamResult,
  LanguageModelV4Usage as ModelUsage,
} from '@ai-sdk/provider'

/** The kinds of files that a model can read. */
export const MEDIA_KINDS = ['image', 'pdf', 'audio'] as const
export type MediaKind = (typeof MEDIA_KINDS)[number]

/** One entry of `[provider]` or `[[provider.fallback]]`. */
export interface ProviderSettings {
  readonly kind: string
  readonly base_url?: string | undefined
  readonly api_key?: Secret | undefined
  readonly model?: string | undefined
  /** Further request headers. Their values are secrets, because they may hold keys of self-hosted endpoints. */
  readonly headers?: Readonly<Record<string, Secret | string>> | undefined
  /** Members to add to the body of each request. */
  readonly options?: Readonly<Record<string, unknown>> | undefined
  /** False when the model is offered no tools. */
  readonly tools?: boolean | undefined
  readonly reasoning_effort?: ModelCallOptions['reasoning'] | undefined
  /** False when the provider shall not mark the conversation for its prompt cache. */
  readonly prompt_cache?: boolean | undefined
  /** The kinds of files that the model reads. */
  readonly media?: readonly MediaKind[] | undefined
  /** The tokens that a request and its reply may have together. */
  readonly context_window?: number | undefined
  // The limits of `[agent]` for this model.
  readonly max_output_tokens?: number | undefined
  readonly max_history_tokens?: number | undefined
  readonly model_timeout_secs?: number | undefined
  readonly max_retries?: number | undefined
  readonly temperature?: number | undefined
}

/** A model that an endpoint lists. A member that the endpoint does not tell is absent. */
export interface OfferedModel {
  /** The name that requests use. */
  readonly id: string
  /** The largest number of tokens of a conversation. */
  readonly contextTokens?: number
  /** US dollars for a million tokens. */
  readonly price?: { readonly input: number; readonly output: number }
}

/** The usual endpoint of a provider. */
export interface UsualEndpoint {
  /** Absent where the address contains a region or an account. */
  readonly baseUrl?: string
  /** The environment variable of the key. Absent for servers that usually need no key. */
  readonly keyVariable?: string
  /** A model to propose. */
  readonly model?: string
}

export interface LoadOptions {
  readonly fetch: typeof fetch
  /** Reports a limit that the model has shown, such as `does not support tools`. Further requests of the model keep it. */
  readonly onLimit?: (label: string) => void
}

export interface Provider {
  /** The values of `[provider] kind` that the provider serves. */
  readonly kinds: readonly string[]
  /** What `sluice setup` proposes. Absent: it offers none of the kinds. */
  readonly usual?: UsualEndpoint
  /**
   * Returns settings from the environment, such as a key. Without `kind` nothing is configured, and the settings must be complete. With
   * `kind` they complete a configured entry of that kind. Makes no request.
   */
  detect?(env: Readonly<Record<string, string | undefined>>, kind?: string): ProviderSettings | undefined
  /** Returns the kinds of files that the models of an endpoint read when the settings do not say. None when absent. */
  media?(settings: ProviderSettings): readonly MediaKind[]
  /** Throws `config_invalid` with the TOML key when these settings cannot work. Imports and sends nothing. */
  check?(settings: ProviderSettings): void
  /**
   * Resolves to the models that the endpoint offers; `model` of the settings may be absent. Rejects with `config_invalid` as `check`
   * does, with `unauthorized` when the key is refused, else with `upstream` or `unavailable`.
   */
  models?(
    settings: ProviderSettings,
    options: { readonly fetch: typeof fetch; readonly signal: AbortSignal },
  ): Promise<readonly OfferedModel[]>
  /**
   * Loads the wire format and makes the model. Called on the first turn and never at start, because the import is heavy. Throws
   * `config_invalid` when a setting is missing.
   */
  load(settings: ProviderSettings, options: LoadOptions): Promise<LanguageModel>
}
