/** What the model calls of a run cost: at least what its steps say to the model, at most what the limits of turns allow. */
import type { SopDefinition } from './definition.ts'

export interface ModelLimits {
  /** Model calls of one turn. */
  readonly callsMax: number
  /** Tokens of all model calls of one turn. */
  readonly tokensMax: number
  /** US dollars for a million tokens. */
  readonly price?: { readonly input: number; readonly output: number }
}

export interface CostRange {
  readonly modelCalls: { readonly min: number; readonly max: number }
  /** US dollars; null where no price is known. */
  readonly usd: { readonly min: number; readonly max: number } | null
}

const CHARS_PER_TOKEN = 4
const TOKENS_PER_PRICE = 1_000_000

/** Of a run in which no step fails. Deterministic mode has no model in it, and a checkpoint is a pause. */
export function estimateCost(
  { mode, steps }: Pick<SopDefinition, 'mode' | 'steps'>,
  payload: string | null,
  { callsMax, tokensMax, price }: ModelLimits,
): CostRange {
  const turns = mode === 'deterministic' ? [] : steps.filter(({ kind }) => kind === 'execute')
  const chars = turns.reduce((sum, { title, body }) => sum + title.length + body.length + (payload?.length ?? 0), 0)
  const usdOf = (tokens: number, each: number) => (tokens * each) / TOKENS_PER_PRICE
  return {
    modelCalls: { min: turns.length, max: turns.length * callsMax },
    usd: price
      ? {
          min: usdOf(Math.min(chars / CHARS_PER_TOKEN, turns.length * tokensMax), price.input),
          max: usdOf(turns.length * tokensMax, Math.max(price.input, price.output)),
        }
      : null,
  }
}
