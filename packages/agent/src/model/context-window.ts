/** The context window of a model: how many tokens a request and its reply may have together, and from where that is known. */
import type { ProviderSettings } from '@sluice/sdk'

/** `setting`: `context_window`; `endpoint`: its list of models; `refusal`: an estimate from a refused request; `family`: the name of the model. */
export const WINDOW_SOURCES = ['setting', 'endpoint', 'refusal', 'family', 'default'] as const

export interface ContextWindow {
  readonly tokens: number
  readonly source: (typeof WINDOW_SOURCES)[number]
}

/** The window of a model of which nothing is known. */
const DEFAULT_TOKENS = 32_000

/** The windows of families of models at their own services, by the beginning of the name after its last slash. The first match counts. */
const FAMILIES: readonly (readonly [name: RegExp, tokens: number])[] = [
  [/^gpt-4\.1/, 1_047_576],
  [/^gpt-(?:[5-9]|[1-9]\d)/, 272_000],
  [/^(?:gpt-4o|gpt-4-turbo|chatgpt-4o)/, 128_000],
  [/^gpt-oss/, 131_072],
  [/^gpt-4/, 8192],
  [/^gpt-3\.5/, 16_385],
  [/^o[1-9]/, 200_000],
  [/^claude/, 200_000],
  [/^gemini/, 1_048_576],
  [/^grok-[4-9]/, 256_000],
  [/^(?:grok|deepseek|llama-[3-9]\.[1-9]|llama-4|mistral-(?:large|medium|small)|ministral|codestral|devstral|magistral)/, 128_000],
  [/^(?:command-[ar]|kimi|glm-[4-9]|minimax|qwen-?(?:[3-9]|plus|max|turbo))/, 128_000],
]

/** Servers of this machine load a model with a window of their own choice, which its name does not tell. */
const LOCAL_KINDS: ReadonlySet<string> = new Set(['ollama', 'lmstudio', 'vllm', 'llamacpp'])

export function contextWindow(
  { kind = '', model = '', context_window }: Partial<ProviderSettings> = {},
  { listed, learnt }: { readonly listed: number | undefined; readonly learnt: number | undefined },
): ContextWindow {
  if (context_window !== undefined) return { tokens: context_window, source: 'setting' }
  if (listed !== undefined) return { tokens: listed, source: 'endpoint' }
  const name = model.slice(model.lastIndexOf('/') + 1).toLowerCase()
  const family = LOCAL_KINDS.has(kind) ? undefined : FAMILIES.find(([pattern]) => pattern.test(name))
  if (learnt !== undefined && learnt < (family?.[1] ?? DEFAULT_TOKENS)) return { tokens: learnt, source: 'refusal' }
  return family ? { tokens: family[1], source: 'family' } : { tokens: DEFAULT_TOKENS, source: 'default' }
}
