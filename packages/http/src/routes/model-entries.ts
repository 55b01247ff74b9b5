/** The configured models of all agents, and how a request names one. */

import type { ModelChain } from '@sluice/agent'
import type { Snapshot } from '@sluice/runtime'
import { AppError, MAIN_AGENT, type ProviderSettings } from '@sluice/sdk'

/** One configured model. */
export interface ModelEntry {
  readonly agent: string
  /** Its table, such as `provider.fallback[0]` or `agents.support.provider`. */
  readonly entry: string
  readonly chain: ModelChain
  readonly index: number
  readonly settings: ProviderSettings
}

/** Returns the configured models, those of the main agent first. An agent without models of its own adds none. */
export function modelEntries({ registry, registries }: Pick<Snapshot, 'registry' | 'registries'>): ModelEntry[] {
  const entries = entriesOf(MAIN_AGENT, 'provider', registry.models)
  for (const [name, { models }] of registries) {
    if (name === MAIN_AGENT) continue
    const own = entriesOf(name, `agents.${name}.provider`, models)
    const isInherited = own.every(({ settings, index }) => isSameEntry(settings, entries[index]?.settings))
    if (!isInherited) entries.push(...own)
  }
  return entries
}

const entriesOf = (agent: string, table: string, chain: ModelChain): ModelEntry[] =>
  chain.labels.flatMap((_, index) => {
    const settings = chain.settings(index)
    return settings ? [{ agent, entry: index === 0 ? table : `${table}.fallback[${index - 1}]`, chain, index, settings }] : []
  })

const isSameEntry = (a: ProviderSettings, b: ProviderSettings | undefined): boolean =>
  b !== undefined && a.model === b.model && isSameEndpoint(a, b)

/** Tells whether two entries have the same address and key. */
export const isSameEndpoint = (a: ProviderSettings, b: ProviderSettings): boolean =>
  a.kind === b.kind && a.base_url === b.base_url && a.api_key?.reveal() === b.api_key?.reveal()

/** Returns the entries of a kind, or the one with this number in the chain of the main agent. Throws `not_found` when there is none. */
export function chosenEntries(entries: readonly ModelEntry[], provider: string | undefined): readonly ModelEntry[] {
  if (provider === undefined) return entries
  const chosen = entries.filter(({ settings, entry, index }) =>
    /^\d+$/.test(provider) ? entry.startsWith('provider') && index === Number(provider) : settings.kind === provider,
  )
  if (chosen.length > 0) return chosen
  const known = entries.map(({ entry, settings }) => `${settings.kind} (${entry})`).join(', ')
  throw new AppError('not_found', `No configured model has the provider '${provider}'. There are: ${known}`)
}
