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

type Chains = Pick<Snapshot, 'registry' | 'registries'>

/** Returns the models of each agent, the main agent first. */
function entriesByAgent({ registry, registries }: Chains): [main: ModelEntry[], ...others: ModelEntry[][]] {
  const others = [...registries].filter(([name]) => name !== MAIN_AGENT)
  return [
    entriesOf(MAIN_AGENT, 'provider', registry.models),
    ...others.map(([name, { models }]) => entriesOf(name, `agents.${name}.provider`, models)),
  ]
}

/** Returns the configured models. An agent without models of its own adds none. */
function ownEntries(chains: Chains): ModelEntry[] {
  const [main, ...others] = entriesByAgent(chains)
  const isInherited = (entries: readonly ModelEntry[]) =>
    entries.every(({ settings, index }) => isSameEntry(settings, main[index]?.settings))
  return [...main, ...others.filter((entries) => !isInherited(entries)).flat()]
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

/** How a request names entries, as `chosenEntries` reads it. */
export const PROVIDER_MEANING =
  'The endpoints of this kind, or one entry: by its table, such as `agents.support.provider`, or by its number; 0 is `[provider]`, 1 its first fallback'

/**
 * Returns the entries of a kind, the one with this number in the chain of the main agent, or the one of this table; all without
 * `provider`. Throws `not_found` without a match.
 */
export function chosenEntries(chains: Chains, provider: string | undefined): readonly ModelEntry[] {
  const entries = ownEntries(chains)
  if (provider === undefined) return entries
  const chosen = /^\d+$/.test(provider)
    ? entries.filter(({ agent, index }) => agent === MAIN_AGENT && index === Number(provider))
    : entries.filter(({ settings }) => settings.kind === provider)
  if (chosen.length > 0) return chosen
  const named = entriesByAgent(chains)
    .flat()
    .filter(({ entry }) => entry === provider)
  if (named.length > 0) return named
  const known = entries.map(({ entry, settings }) => `${settings.kind} (${entry})`).join(', ')
  throw new AppError('not_found', `No configured model has the provider '${provider}'. There are: ${known}`)
}
