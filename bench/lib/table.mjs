// Prints the outcomes as a table.

export const number = (value) => {
  if (!Number.isFinite(value)) return ''
  return value >= 1000 ? Math.round(value).toLocaleString('en') : value.toPrecision(3)
}
export const short = (value) => (Number.isFinite(value) ? value.toFixed(2) : '')
export const range = (value, text = short) => (value ? `${text(value.min)}–${text(value.max)}` : '')
export const barText = ({ bar, unit }) => {
  if (!bar) return ''
  const [kind, scale] = bar.cpu ? [bar.cpu, '× CPU'] : bar.ratio ? [bar.ratio, '×'] : [bar.value, unit ? ` ${unit}` : '']
  return `${kind === 'at most' ? '≤' : '≥'} ${bar.limit}${scale}`
}
export const verdict = ({ error, met }) => (error ? 'failed' : met === undefined ? '' : met ? 'ok' : 'MISSED')
/** The rounds that count, of all; with an exclamation mark if other processes disturbed each of them. */
export const roundsText = ({ kept, dropped, disturbed }) => (kept === undefined ? '' : `${kept}/${kept + dropped}${disturbed ? '!' : ''}`)

const COLUMNS = [
  ['', ({ title, unit }) => (unit ? `${title} (${unit})` : title)],
  ['bare', ({ bare }) => number(bare), 'right'],
  ['sluice', ({ ours }) => number(ours), 'right'],
  ['ratio', ({ ratio }) => short(ratio), 'right'],
  ['min–max', ({ ratio, ratioMin: min, ratioMax: max }) => (Number.isFinite(ratio) ? range({ min, max }) : ''), 'right'],
  ['CPU µs bare', ({ cpu }) => number(cpu?.bare?.median), 'right'],
  ['sluice', ({ cpu }) => number(cpu?.ours?.median), 'right'],
  ['ratio', ({ cpu }) => short(cpu?.ratio?.median), 'right'],
  ['min–max', ({ cpu }) => range(cpu?.ratio ?? cpu?.ours, cpu?.ratio ? short : number), 'right'],
  ['bar', barText, 'right'],
  ['rounds', roundsText, 'right'],
  ['', verdict],
]

export function printTable(outcomes) {
  const cells = [COLUMNS.map(([heading]) => heading), ...outcomes.map((outcome) => COLUMNS.map(([, text]) => text(outcome)))]
  const widths = COLUMNS.map((_, column) => Math.max(...cells.map((row) => row[column].length)))
  const line = (row) =>
    row.map((cell, column) => (COLUMNS[column][2] === 'right' ? cell.padStart(widths[column]) : cell.padEnd(widths[column])))
  for (const row of cells) console.log(line(row).join('  ').trimEnd())
  for (const { title, error } of outcomes) if (error) console.log(`${title}: ${error}`)
}
