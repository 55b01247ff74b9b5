/** The configured model and its fallbacks. */
import { patientFetch, signalScope } from '@sluice/kit'
import { AppError, type LanguageModel, type Logger, type OfferedModel, type Provider, type ProviderSettings } from '@sluice/sdk'
import { type ContextWindow, contextWindow } from './context-window.ts'

export interface ModelChain {
  /** The `provider:model` of each entry, for status. Loads nothing. */
  readonly labels: readonly { readonly provider: string; readonly model: string }[]
  /** Loads an entry on first use. A failed load is retried at the next use. */
  load(index: number): Promise<LanguageModel>
  /** Returns the settings of an entry. */
  settings(index: number): ProviderSettings | undefined
  /** Returns the window of the model of an entry, with the best source that is known by now. */
  window(index: number): ContextWindow
  /** Asks the endpoint of an entry for the window of its model, once, unless the settings say it. Never rejects. */
  findWindow(index: number): Promise<void>
  /** The estimated tokens of the longest conversation that the model of an entry takes, as its refusals have shown; undefined before one. */
  learntTokens(index: number): number | undefined
  /** Notes that the model of an entry refused a conversation and took it once it was shortened to this number of estimated tokens. */
  learnWindow(index: number, tokens: number): void
  /** The limits that the model of an entry has shown since it was loaded, such as `does not support tools`. */
  limits(index: number): readonly string[]
  /**
   * Resolves to the models of the endpoint of an entry, or of other settings, as `Provider.models` does; undefined when the endpoint has
   * no list.
   */
  offered(endpoint: number | ProviderSettings, signal: AbortSignal): Promise<readonly OfferedModel[]> | undefined
  /** Loads a model for one test. Its limits go to `onLimit` and not to an entry. */
  loadForTest(settings: ProviderSettings, onLimit: (label: string) => void): Promise<LanguageModel>
}

/** Returns the limits of all entries as operators read them, such as `ollama:gemma3 does not support tools`. */
export const shownLimits = ({ labels, limits }: Pick<ModelChain, 'labels' | 'limits'>): string[] =>
  labels.flatMap(({ provider, model }, index) => limits(index).map((limit) => `${provider}:${model} ${limit}`))

/** Tells whether a listed model is the one that requests name: Ollama lists `llama3.2:latest` for `llama3.2`, Google `models/<name>`. */
export const isSameModel = (listed: string, model: string): boolean => [model, `${model}:latest`, `models/${model}`].includes(listed)

/** An endpoint that does not list its models within this time is used without its list. */
const WINDOW_TIMEOUT_MS = 3000
/** How often an endpoint is asked for the window of its model. */
const WINDOW_SEARCHES_MAX = 3

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
  const learnt: (number | undefined)[] = []
  const listed: (number | undefined)[] = []
  const searches: { running?: Promise<void>; count: number }[] = settings.map(() => ({ count: 0 }))

  const withProvider = (entry: ProviderSettings | undefined) => {
    const provider = entry && providers.find(({ kinds }) => kinds.includes(entry.kind))
    if (!provider) throw new AppError('config_invalid', `No provider serves kind "${entry?.kind ?? ''}"`)
    return { entry, provider }
  }

  const fetchOf = (entry: ProviderSettings) => patientFetch(fetcher, entry.model_timeout_secs ?? timeoutSecs)

  /** Lists the models of an entry, and notes the window of its own one. */
  async function listModels(index: number, signal: AbortSignal): Promise<readonly OfferedModel[] | undefined> {
    const { entry, provider } = withProvider(settings[index])
    const models = await provider.models?.(entry, { fetch: fetcher, signal })
    listed[index] = models?.find(({ id }) => isSameModel(id, entry.model ?? ''))?.contextTokens ?? listed[index]
    return models
  }

  async function searchWindow(index: number): Promise<void> {
    using limit = signalScope([], WINDOW_TIMEOUT_MS)
    await listModels(index, limit.signal)
  }

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
    window: (index) => contextWindow(settings[index], { listed: listed[index], learnt: learnt[index] }),
    findWindow(index) {
      const search = searches[index]
      if (!search || settings[index]?.context_window !== undefined) return Promise.resolve()
      if (!search.running && search.count < WINDOW_SEARCHES_MAX) {
        search.count++
        search.running = searchWindow(index).catch((error: unknown) => {
          delete search.running
          log.debug('the endpoint does not tell the window of its model', { model: settings[index]?.model, error })
        })
      }
      return search.running ?? Promise.resolve()
    },
    learntTokens: (index) => learnt[index],
    learnWindow(index, tokens) {
      learnt[index] = Math.min(tokens, learnt[index] ?? tokens)
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
      if (!provider.models) return undefined
      return typeof endpoint === 'number'
        ? listModels(endpoint, signal).then((models) => models ?? [])
        : provider.models(entry, { fetch: fetcher, signal })
    },
    async loadForTest(other, onLimit) {
      const { entry, provider } = withProvider(other)
      return provider.load(entry, { fetch: fetchOf(entry), onLimit })
    },
  }
}
