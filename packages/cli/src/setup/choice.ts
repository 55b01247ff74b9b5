/** The endpoint and the model that setup is about to write: their settings, their models and their change of the configuration. */
import { chooseProviders } from '@sluice/agent'
import type { ProviderConfig } from '@sluice/config'
import { signalScope } from '@sluice/kit'
import { outboundFetch } from '@sluice/runtime/outbound-fetch'
import type { OfferedModel, Provider, ProviderSettings, Secret } from '@sluice/sdk'
import type { CliContext } from '../context.ts'

export interface EndpointChoice {
  readonly kind: string
  readonly provider: Provider
  /** Undefined for the provider's own address. */
  readonly baseUrl: string | undefined
  /** A key to store; undefined for the stored one, for that of the environment, or for none. */
  readonly newKey: Secret | undefined
}

const LIST_MS_MAX = 10_000
/** The model of an endpoint whose models are listed before one is chosen. */
const NO_MODEL = 'none'

const isSameEndpoint = (current: ProviderConfig, { kind, baseUrl }: EndpointChoice): boolean =>
  current.kind === kind && current.base_url === baseUrl

/** Whether the configuration says what the models of the endpoint read, and not only the provider. */
export const isMediaSet = (current: ProviderConfig, choice: EndpointChoice): boolean =>
  isSameEndpoint(current, choice) && current.media !== undefined

/**
 * Returns the settings as the daemon will have them: settings of the same endpoint stay, and a key of the environment completes them.
 * Throws `config_invalid` when they cannot work.
 */
export function settingsOf(
  choice: EndpointChoice,
  { current, env, model = NO_MODEL }: { readonly current: ProviderConfig; readonly env: CliContext['env']; readonly model?: string },
): ProviderSettings {
  const { kind, baseUrl, newKey, provider } = choice
  const kept = isSameEndpoint(current, choice) ? current : {}
  const entry = { ...kept, kind, base_url: baseUrl, model, ...(newKey && { api_key: newKey }), fallback: [] }
  const [settings] = chooseProviders(entry, [provider], env)
  return settings ?? entry
}

/**
 * Resolves to the models of the endpoint; undefined when it has no list. Rejects with `unauthorized` for a wrong key, else with
 * `upstream` or `unavailable`.
 */
export async function offeredModels(
  { provider }: EndpointChoice,
  settings: ProviderSettings,
  signal: AbortSignal,
): Promise<readonly OfferedModel[] | undefined> {
  using limit = signalScope([signal], LIST_MS_MAX)
  return await provider.models?.(settings, { fetch: outboundFetch, signal: limit.signal })
}

/** One changed key of `[provider]`. Secrets are not shown. */
export interface ProviderChange {
  readonly key: string
  /** TOML, or a note in parentheses; null for a key that is not set. */
  readonly before: string | null
  readonly after: string | null
  /** The new value; undefined removes the key. */
  readonly value: string | undefined
}

/** The model that setup is about to write. */
export interface ModelChoice {
  readonly model: string
  /** Whether its test has shown that it reads pictures, which its endpoint is not known to do. */
  readonly seesPictures: boolean
}

const NOT_OF_ENDPOINT = ['kind', 'model', 'fallback', 'base_url', 'api_key']

/** Returns the changes of the file. Settings of another endpoint are removed, because they are about its requests. */
export function changesOf(current: ProviderConfig, choice: EndpointChoice, { model, seesPictures }: ModelChoice): ProviderChange[] {
  const { kind, baseUrl, newKey } = choice
  const isSame = isSameEndpoint(current, choice)
  const isStale = (key: string) => !NOT_OF_ENDPOINT.includes(key) && !(seesPictures && key === 'media')
  const stale = Object.entries(current).filter(([key, value]) => value !== undefined && isStale(key))
  const keepsKey = isSame && !newKey
  return [
    textChange('kind', current.kind, kind),
    textChange('model', current.model, model),
    textChange('base_url', current.base_url, baseUrl),
    ...(keepsKey ? [] : [keyChange(current.api_key !== undefined, newKey)]),
    ...(seesPictures ? [picturesChange(current)] : []),
    ...(isSame ? [] : stale.map(([key]) => ({ key, before: '(set)', after: null, value: undefined }))),
  ].filter(({ before, after }) => before !== after)
}

function textChange(key: string, before: string | undefined, after: string | undefined): ProviderChange {
  const shown = (text: string | undefined) => (text === undefined ? null : JSON.stringify(text))
  return { key, before: shown(before), after: shown(after), value: after === undefined ? undefined : JSON.stringify(after) }
}

const MEDIA = '["image"]'

const picturesChange = ({ media }: ProviderConfig): ProviderChange => ({
  key: 'media',
  before: media ? JSON.stringify(media) : null,
  after: MEDIA,
  value: MEDIA,
})

const keyChange = (isSet: boolean, newKey: Secret | undefined): ProviderChange => ({
  key: 'api_key',
  before: isSet ? '(set)' : null,
  after: newKey ? '(a new key, encrypted)' : null,
  value: newKey && JSON.stringify(newKey.reveal().trim()),
})
