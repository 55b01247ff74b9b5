/** Computes the cost of a model call from the operator's prices (`[cost] prices`). */
import type { CostConfig } from '@sluice/config'

const TOKENS_PER_PRICE = 1_000_000

interface CalledModel {
  readonly provider: string
  readonly model: string
}

/** Returns the price of `provider/model`, else of `model`, else of the part of the model after its last `/`; undefined when there is none. */
export function priceOf(prices: CostConfig['prices'], { provider, model }: CalledModel): CostConfig['prices'][string] | undefined {
  const key = [`${provider}/${model}`, model, model.slice(model.lastIndexOf('/') + 1)].find((name) => Object.hasOwn(prices, name))
  return key === undefined ? undefined : prices[key]
}

/** Returns the cost in US dollars; 0 for a model without a price. */
export function callCostUsd(
  prices: CostConfig['prices'],
  call: CalledModel & { readonly inputTokens: number; readonly outputTokens: number },
): number {
  const price = priceOf(prices, call)
  return price ? (call.inputTokens * price.input + call.outputTokens * price.output) / TOKENS_PER_PRICE : 0
}
