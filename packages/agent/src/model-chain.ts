/** The configured model and its fallbacks. */
import { AppError, type LanguageModel, type Provider, type ProviderSettings } from '@sluice/sdk'

export interface ModelChain {
  /** `provider:model` of each entry, for status; nothing is loaded. */
  readonly labels: readonly { readonly provider: string; readonly model: string }[]
  /** Loads the entry on first use and keeps it; a failed load is tried again next time. */
  load(index: number): Promise<LanguageModel>
  /** The names of the models at each entry's endpoint, as `Provider.models` rejects and resolves; undefined if it cannot be asked. */
  offered(index: number, signal: AbortSignal): Promise<readonly string[]> | undefined
}

export interface ModelChainOptions {
  /** As `chooseProviders` returns them. */
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
