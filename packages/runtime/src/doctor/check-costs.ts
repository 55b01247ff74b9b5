/** Checks that limits in dollars can act: a model without a price costs nothing, so that a limit never ends its turns. */
import { isFree, type ModelChain, priceOf } from '@sluice/agent'
import { type CostConfig, costSection } from '@sluice/config'
import type { ProviderSettings } from '@sluice/sdk'
import type { Snapshot } from '../features/snapshot.ts'
import { type Check, fail, ok } from './check.ts'

/** One row for each model whose turns no limit of `[cost]` ends; empty without such a limit. */
export function checkCosts({ config, registries }: Pick<Snapshot, 'config' | 'registries'>): Check[] {
  const cost = config.core(costSection)
  const limits = limitsOf(cost)
  if (limits === '') return []
  const rows = [...registries.values()].flatMap(({ models }) =>
    models.labels.flatMap((label, at) => rowOf(label, models.settings(at), { cost, limits })),
  )
  // Agents often share their models.
  return [...new Map(rows.map((row) => [row.detail, row])).values()]
}

const limitsOf = (cost: CostConfig): string =>
  (['daily_limit_usd', 'monthly_limit_usd'] as const).filter((name) => cost[name] !== undefined).join(' and ')

interface Judged {
  readonly cost: CostConfig
  /** The names of the limits that are set. */
  readonly limits: string
}

function rowOf(label: ModelChain['labels'][number], settings: ProviderSettings | undefined, { cost, limits }: Judged): Check[] {
  if (priceOf(cost.prices, label)) return []
  const name = `${label.provider}/${label.model}`
  if (isFree(label, settings))
    return [ok('prices', `${name} runs on this machine and has no price, so that ${limits} of [cost] never ends its turns`)]
  const fix = `add [cost.prices."${name}"] with input and output, in US dollars for a million tokens`
  const { unknown, unknown_usd_per_million: usd } = cost
  if (unknown === 'refuse') return [fail('prices', `${name} has no price, so that unknown = "refuse" of [cost] refuses its turns`, fix)]
  if (usd !== undefined) return [ok('prices', `${name} has no price, and counts ${usd} US dollars for a million tokens`)]
  return [fail('prices', `${name} has no price, so that ${limits} of [cost] never ends its turns`, fix)]
}
