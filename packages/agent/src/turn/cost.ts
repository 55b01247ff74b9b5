/** Computes the cost of a model call from the operator's prices (`[cost] prices`). */
import { type CostConfig, isLoopbackHost } from '@sluice/config'
import type { ProviderSettings } from '@sluice/sdk'

const TOKENS_PER_PRICE = 1_000_000

interface CalledModel {
  readonly provider: string
  readonly model: string
}

/** Returns the price of `provider/model`, else of `model`, else of the part of the model after its last `/`; undefined without one. */
export function priceOf(prices: CostConfig['prices'], { provider, model }: CalledModel): CostConfig['prices'][string] | undefined {
  const key = [`${provider}/${model}`, model, model.slice(model.lastIndexOf('/') + 1)].find((name) => Object.hasOwn(prices, name))
  return key === undefined ? undefined : prices[key]
}

/** The kinds of models that cost nothing unless they have a price. */
const FREE = ['ollama', 'offline']

/** Whether a model runs on this machine, so that it costs nothing unless it has a price. */
export function isFree({ provider }: Pick<CalledModel, 'provider'>, settings: Pick<ProviderSettings, 'base_url'> | undefined): boolean {
  const host = URL.parse(settings?.base_url ?? '')?.hostname
  return FREE.includes(provider) || (host !== undefined && isLoopbackHost(host))
}

/** Returns the prices with one for this model if it has none, as `[cost] unknown_usd_per_million` says. */
export function pricesWith(
  { prices, unknown_usd_per_million: usd }: CostConfig,
  called: CalledModel,
  settings: Pick<ProviderSettings, 'base_url'> | undefined,
): CostConfig['prices'] {
  if (usd === undefined || priceOf(prices, called) || isFree(called, settings)) return prices
  return { ...prices, [`${called.provider}/${called.model}`]: { input: usd, output: usd } }
}

export interface CallTokens {
  /** All input tokens, prompt cache included. */
  readonly inputTokens: number
  readonly outputTokens: number
  /** The input tokens that came from the prompt cache, and the ones that were stored in it. */
  readonly cacheRead?: number | undefined
  readonly cacheWrite?: number | undefined
}

/** Returns the cost in US dollars; 0 for a model without a price. */
export function callCostUsd(prices: CostConfig['prices'], call: CalledModel & CallTokens): number {
  const price = priceOf(prices, call)
  if (!price) return 0
  const { inputTokens, outputTokens, cacheRead = 0, cacheWrite = 0 } = call
  const { input, output, cache_read = input, cache_write = input } = price
  const plain = Math.max(0, inputTokens - cacheRead - cacheWrite)
  return (plain * input + cacheRead * cache_read + cacheWrite * cache_write + outputTokens * output) / TOKENS_PER_PRICE
}
