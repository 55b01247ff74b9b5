/** What a model call costs, by the operator's price table (`[cost] prices`). */
import type { CostConfig } from './config.ts'

const TOKENS_PER_PRICE = 1_000_000

/** The price of `provider/model`, else of `model`, else of what follows the model's last `/`; unknown models cost nothing. */
export function callCostUsd(
  prices: CostConfig['prices'],
  call: { readonly provider: string; readonly model: string; readonly inputTokens: number; readonly outputTokens: number },
): number {
  const { provider, model } = call
  const key = [`${provider}/${model}`, model, model.slice(model.lastIndexOf('/') + 1)].find((name) => Object.hasOwn(prices, name))
  const price = key === undefined ? undefined : prices[key]
  return price ? (call.inputTokens * price.input + call.outputTokens * price.output) / TOKENS_PER_PRICE : 0
}
