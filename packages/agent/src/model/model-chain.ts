/** The configured model and its fallbacks. */
import { patientFetch } from '@sluice/kit'
import { AppError, type LanguageModel, type Logger, type OfferedModel, type Provider, type ProviderSettings } from '@sluice/sdk'

export interface ModelChain {
  /** The `provider:model` of each entry, for status. Loads nothing. */
  readonly labels: readonly { readonly provider: string; readonly model: string }[]
  /** Loads an entry on first use. A failed load is retried at the next use. */
  load(index: number): Promise<LanguageModel>
  /** Returns the settings of an entry. */
  settings(index: number): ProviderSettings | undefined
  /** The estimated tokens of the longest conversation that the model of an entry takes, as its refusals have shown; undefined before one. */
  window(index: number): number | undefined
  /** Notes that the model of an entry refused a conversation and took it once it was shortened to this number of estimated tokens. */
  learnWindow(index: number, tokens: number): void
  /** The limits that the model of an entry has shown since it was loaded, such as `does not support tools`. */
  limits(index: number): readonly string[]
  /**
   * Resolves to the models of the endpoint of an entry, or of other settings, as `Provider.models` does; undefined when the endpoint has
   * no list.
   */
  offered(endpoint: number | ProviderSettings, signal: AbortSignal): Promise<readonly OfferedModel[]> | undefined
  /** Loads a model for one test. Its limits go to `onLimit` and not to those of an entry. */
  loadForTest(settings: ProviderSettings, onLimit: (label: string) => void): Promise<LanguageModel>
}

/** Returns the limits of all entries as operators read them, such as `ollama:gemma3 does not support tools`. */
export const shownLimits = ({ labels, limits }: Pick<ModelChain, 'labels' | 'limits'>): string[] =>
  labels.flatMap(({ provider, model }, index) => limits(index).map((limit) => `${provider}:${model} ${limit}`))

/** Tells whether a listed model is the one that requests name: Ollama lists `llama3.2:latest` for `llama3.2`, Google `models/<name>`. */
export const isSameModel = (listed: string, model: string): boolean => [model, `${model}:latest`, `models/${model}`].includes(listed)

export interface ModelChainOptions {
  /** The entries, as `chooseProviders` returns them. */
  readonly settings: readonly ProviderSettings[]
  readonly providers: readonly Provider[]
  readonly fetch: typeof fetch
  /** `[agent] model_timeout_secs`, where an entry has no limit of its own. */
  readonly timeoutSecs: number
  readonly log: Logger
}

export function createModelChain({ settings, providers, fetch: fetcher, timeoutSecs, log }: ModelChainOptions): ModelChain {
  const loaded: (Promise<LanguageModel> | undefined)[] = []
  const limits: string[][] = settings.map(() => [])
  const windows: (number | undefined)[] = []

  const withProvider = (entry: ProviderSettings | undefined) => {
    const provider = entry && providers.find(({ kinds }) => kinds.includes(entry.kind))
    if (!provider) throw new AppError('config_invalid', `No provider serves kind "${entry?.kind ?? ''}"`)
    return { entry, provider }
  }

  const fetchOf = (entry: ProviderSettings) => patientFetch(fetcher, entry.model_timeout_secs ?? timeoutSecs)

  async function loadEntry(index: number): Promise<LanguageModel> {
    const { entry, provider } = withProvider(settings[index])
    const model = `${entry.kind}:${entry.model ?? 'default'}`
    return provider.load(entry, {
      fetch: fetchOf(entry),
      onLimit(label) {
        limits[index]?.push(label)
        log.warn(`model ${label}`, { model })
      },
    })
  }

  return {
    labels: settings.map(({ kind, model }) => ({ provider: kind, model: model ?? 'default' })),
    settings: (index) => settings[index],
    limits: (index) => limits[index] ?? [],
    window: (index) => windows[index],
    learnWindow(index, tokens) {
      windows[index] = Math.min(tokens, windows[index] ?? tokens)
    },
    load(index) {
      const known = loaded[index]
      if (known) return known
      const loading = loadEntry(index)
      loaded[index] = loading
      loading.catch(() => {
        loaded[index] = undefined
      })
      return loading
    },
    offered(endpoint, signal) {
      const { entry, provider } = withProvider(typeof endpoint === 'number' ? settings[endpoint] : endpoint)
      return provider.models?.(entry, { fetch: fetcher, signal })
    },
    async loadForTest(other, onLimit) {
      const { entry, provider } = withProvider(other)
      return provider.load(entry, { fetch: fetchOf(entry), onLimit })
    },
  }
}
