/** The port of model access: the AI SDK's language-model interface, so its provider packages fit as they are. */
import type { LanguageModelV4 } from '@ai-sdk/provider'
import type { Secret } from './secret.ts'

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

/** One entry of `[provider]` or `[[provider.fallback]]`. */
export interface ProviderSettings {
  readonly kind: string
  readonly base_url?: string | undefined
  readonly api_key?: Secret | undefined
  readonly model?: string | undefined
  /** Further request headers; their values are secrets, since this is where keys of self-hosted endpoints stand. */
  readonly headers?: Readonly<Record<string, Secret | string>> | undefined
}

export interface Provider {
  /** Values of `[provider] kind` it serves. */
  readonly kinds: readonly string[]
  /** What the environment offers when nothing is configured, such as a key; never a request. */
  detect?(env: Readonly<Record<string, string | undefined>>): ProviderSettings | undefined
  /** Throws `config_invalid` that names the TOML key if these settings cannot work. Imports nothing and sends nothing. */
  check?(settings: ProviderSettings): void
  /**
   * Asks the endpoint for the names of its models. Rejects with `config_invalid` like `check`, with `unauthorized` if the
   * key is refused, with `upstream` or `unavailable` otherwise.
   */
  models?(settings: ProviderSettings, options: { readonly fetch: typeof fetch; readonly signal: AbortSignal }): Promise<readonly string[]>
  /**
   * Loads the wire format and makes the model. Called on the first turn, never at start: this is where the heavy import
   * stands. Throws `config_invalid` when something is missing.
   */
  load(settings: ProviderSettings, options: { readonly fetch: typeof fetch }): Promise<LanguageModel>
}
