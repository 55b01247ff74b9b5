/** Chooses the models: the configured ones, else one of the environment, else the built-in offline one. */

import type { ProviderConfig } from '@sluice/config'
import { nearestNames } from '@sluice/kit'
import { AppError, howToGet, type Provider, type ProviderSettings, ROWS } from '@sluice/sdk'

type Env = Readonly<Record<string, string | undefined>>
type Entry = Omit<ProviderConfig, 'fallback'>

const OFFLINE: ProviderSettings = { kind: 'offline' }

/** Returns the entries of the model chain, the first choice first. Throws `config_invalid`. Makes no request. */
export function chooseProviders(config: ProviderConfig, providers: readonly Provider[], env: Env): ProviderSettings[] {
  const { fallback, ...first } = config
  return [
    chooseFirst(first, providers, env),
    ...fallback.map((entry, index) => {
      try {
        return complete(entry, entry.kind, providers, env)
      } catch (error) {
        throw error instanceof AppError ? new AppError(error.code, `provider.fallback[${index}]: ${error.message}`) : error
      }
    }),
  ]
}

/** Tells whether a model of the chain is given pictures. */
export const readsPictures = (entries: readonly Pick<ProviderSettings, 'media'>[]): boolean =>
  entries.some(({ media }) => media?.includes('image') === true)

function chooseFirst(entry: Entry, providers: readonly Provider[], env: Env): ProviderSettings {
  if (entry.kind !== undefined) return complete(entry, entry.kind, providers, env)
  for (const provider of providers) {
    const found = provider.detect?.(env)
    if (found) return checked({ ...found, ...definedOf(entry) }, provider)
  }
  if (providers.some(({ kinds }) => kinds.includes(OFFLINE.kind))) return OFFLINE
  throw new AppError(
    'config_invalid',
    `[provider] kind is not set, the environment has no key, and this build has no offline provider: set provider.kind to one of ${kindsOf(providers)}`,
  )
}

/** Returns a configured entry. A key of the environment supplies a missing key, unless the operator set another address. */
function complete(entry: Entry, kind: string, providers: readonly Provider[], env: Env): ProviderSettings {
  const provider = providers.find(({ kinds }) => kinds.includes(kind))
  if (!provider) throw unknownKind(kind, providers)
  const found = entry.api_key === undefined && entry.base_url === undefined ? provider.detect?.(env, kind) : undefined
  return checked({ ...(found?.kind === kind && found), ...definedOf(entry), kind }, provider)
}

function checked(settings: ProviderSettings, provider: Provider): ProviderSettings {
  provider.check?.(settings)
  return settings.media || !provider.media ? settings : { ...settings, media: provider.media(settings) }
}

const definedOf = (entry: Entry): Partial<ProviderSettings> =>
  Object.fromEntries(Object.entries(entry).filter(([, value]) => value !== undefined))

const kindsOf = (providers: readonly Provider[]): string => providers.flatMap(({ kinds }) => kinds).join(', ')

function unknownKind(kind: string, providers: readonly Provider[]): AppError {
  const [id] = ROWS.find(([, row]) => row.kinds?.includes(kind)) ?? []
  const [near] = nearestNames(
    kind,
    providers.flatMap(({ kinds }) => kinds),
  )
  const meant = near === undefined ? '' : `; did you mean "${near}"?`
  const cure = id ? `is not in this build; to add it, ${howToGet(id)}.` : `is unknown${meant || '.'}`
  return new AppError('config_invalid', `Provider kind "${kind}" ${cure} This build has: ${kindsOf(providers)}`)
}
