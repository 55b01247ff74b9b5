/** The configured model and its fallbacks. */
import { AppError, type LanguageModel, type Provider, type ProviderSettings } from '@sluice/sdk'

export interface ModelChain {
  /** The `provider:model` of each entry, for status. Loads nothing. */
  readonly labels: readonly { readonly provider: string; readonly model: string }[]
  /** Loads an entry on first use. A failed load is retried at the next use. */
  load(index: number): Promise<LanguageModel>
  /** Resolves to the model names of an entry's endpoint, as `Provider.models` does; undefined when the endpoint has no list. */
  offered(index: number, signal: AbortSignal): Promise<readonly string[]> | undefined
}

export interface ModelChainOptions {
  /** The entries, as `chooseProviders` returns them. */
  readonly settings: readonly ProviderSettings[]
  readonly providers: readonly Provider[]
  readonly fetch: typeof fetch
}

export function createModelChain({ settings, providers, fetch }: ModelChainOptions): ModelChain {
  const loaded: (Promise<LanguageModel> | undefined)[] = []

  const entryAt = (index: number) => {
    const entry = settings[index]
    const provider = entry && providers.find(({ kinds }) => kinds.includes(entry.kind))
    if (!provider) throw new AppError('config_invalid', `No provider serves kind "${entry?.kind ?? ''}"`)
    return { entry, provider }
  }

  async function loadEntry(index: number): Promise<LanguageModel> {
    const { entry, provider } = entryAt(index)
    return provider.load(entry, { fetch })
  }

  return {
    labels: settings.map(({ kind, model }) => ({ provider: kind, model: model ?? 'default' })),
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
    offered(index, signal) {
      const { entry, provider } = entryAt(index)
      return provider.models?.(entry, { fetch, signal })
    },
  }
}
