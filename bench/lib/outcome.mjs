// Computes the medians and the ratio of a row from its rounds, and checks its bar.
import { median } from './numbers.mjs'

const MEETS = { 'at most': (value, limit) => value <= limit, 'at least': (value, limit) => value >= limit }

/** `rounds` are `{ ours, bare? }`. The ratio is computed within each round, so that a slow round affects both of its sides. */
export function outcomeOf(row, rounds) {
  const ratios = rounds.map(({ ours, bare }) => ours / bare).filter(Number.isFinite)
  const [ours, ratio] = [median(rounds.map((round) => round.ours)), median(ratios)]
  const { bar } = row
  const met = bar ? (bar.ratio ? MEETS[bar.ratio](ratio, bar.limit) : MEETS[bar.value](ours, bar.limit)) : undefined
  return {
    ...row,
    ours,
    bare: median(rounds.map(({ bare }) => bare)),
    ratio,
    ratioMin: Math.min(...ratios),
    ratioMax: Math.max(...ratios),
    met,
    rounds,
  }
}
