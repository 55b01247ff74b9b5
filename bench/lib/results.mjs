// The recorded results, from which docs/performance.md is generated. Each run replaces the rows that it measured.
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const FILE = join(import.meta.dirname, '..', 'results.json')
const DIGITS = 4

/** Rounds numbers, so that a record has no more digits than the measurement. */
const rounded = (_, value) => (typeof value === 'number' ? Number(value.toPrecision(DIGITS)) : value)

export const readResults = () => (existsSync(FILE) ? JSON.parse(readFileSync(FILE, 'utf8')) : { runs: [] })

/** Records a run without its single rounds. A row that could not be measured keeps its earlier result. Returns the file. */
export function writeResults({ setting, quick, outcomes }) {
  const rows = outcomes.filter(({ error }) => !error).map(({ rounds: _, ...outcome }) => outcome)
  const measured = new Set(rows.map(({ name }) => name))
  const earlier = readResults().runs.map((run) => ({ ...run, rows: run.rows.filter(({ name }) => !measured.has(name)) }))
  const runs = [...earlier.filter((run) => run.rows.length > 0), { setting, quick, rows }]
  writeFileSync(FILE, `${JSON.stringify({ runs }, rounded, 2)}\n`)
  return FILE
}
