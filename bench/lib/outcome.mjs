// Computes the medians, the spread and the ratio of a row from its rounds, and checks its bar.
import { median } from './numbers.mjs'

/** A round during which other processes used more cores than this is dropped. */
export const OTHER_CORES_MAX = 0.25

const MEETS = { 'at most': (value, limit) => value <= limit, 'at least': (value, limit) => value >= limit }

/** Returns the median, the least and the greatest of the finite values; undefined without any. */
function spread(values) {
  const finite = values.filter(Number.isFinite)
  return finite.length > 0 ? { median: median(finite), min: Math.min(...finite), max: Math.max(...finite) } : undefined
}

/**
 * `rounds` are `{ours, bare?, oursCpuUs?, bareCpuUs?, otherCores}`: the measured values, and the CPU time of the server for one unit of
 * work. Ratios are computed within each round, so that a slow round affects both of its sides. If every round was disturbed, all of
 * them count, and `disturbed` says so.
 */
export function outcomeOf(row, rounds) {
  const quiet = rounds.filter(({ otherCores = 0 }) => otherCores <= OTHER_CORES_MAX)
  const disturbed = quiet.length === 0
  const kept = disturbed ? rounds : quiet
  const ratio = spread(kept.map(({ ours, bare }) => ours / bare))
  const ours = spread(kept.map((round) => round.ours))
  const cpu = {
    ours: spread(kept.map(({ oursCpuUs }) => oursCpuUs)),
    bare: spread(kept.map(({ bareCpuUs }) => bareCpuUs)),
    ratio: spread(kept.map(({ oursCpuUs, bareCpuUs }) => oursCpuUs / bareCpuUs)),
  }
  return {
    ...row,
    ours: ours?.median,
    spread: ours,
    bare: spread(kept.map(({ bare }) => bare))?.median,
    ratio: ratio?.median,
    ratioMin: ratio?.min,
    ratioMax: ratio?.max,
    ...(cpu.ours && { cpu }),
    kept: kept.length,
    dropped: rounds.length - kept.length,
    disturbed,
    otherCores: spread(kept.map(({ otherCores }) => otherCores))?.median,
    met: isMet(row.bar, { ours: ours?.median, ratio: ratio?.median, cpu: cpu.ratio?.median }),
    rounds,
  }
}

/** Undefined for a row without a bar. */
function isMet(bar, { ours, ratio, cpu }) {
  if (!bar) return undefined
  if (bar.cpu) return MEETS[bar.cpu](cpu, bar.limit)
  return bar.ratio ? MEETS[bar.ratio](ratio, bar.limit) : MEETS[bar.value](ours, bar.limit)
}
