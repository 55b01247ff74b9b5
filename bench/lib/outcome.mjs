// From the rounds of a row to its medians, its ratio and whether it meets its bar.
import { median } from './numbers.mjs'

const MEETS = { 'at most': (value, limit) => value <= limit, 'at least': (value, limit) => value >= limit }

/** `rounds` are `{ ours, bare? }`. A ratio is taken inside each round, so that what slows a whole round cancels out. */
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
