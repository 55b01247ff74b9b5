// Prints the outcomes as a table.

const number = (value) => {
  if (!Number.isFinite(value)) return ''
  return value >= 1000 ? Math.round(value).toLocaleString('en') : value.toPrecision(3)
}
const short = (value) => (Number.isFinite(value) ? value.toFixed(2) : '')
const barText = ({ bar, unit }) =>
  bar ? `${(bar.ratio ?? bar.value) === 'at most' ? '≤' : '≥'} ${bar.limit}${bar.ratio ? '×' : ` ${unit}`}` : ''
const verdict = ({ error, met }) => (error ? 'failed' : met === undefined ? '' : met ? 'ok' : 'MISSED')

const COLUMNS = [
  ['', ({ title, unit }) => `${title} (${unit})`],
  ['bare', ({ bare }) => number(bare), 'right'],
  ['sluice', ({ ours }) => number(ours), 'right'],
  ['ratio', ({ ratio }) => short(ratio), 'right'],
  ['min–max', ({ ratio, ratioMin, ratioMax }) => (Number.isFinite(ratio) ? `${short(ratioMin)}–${short(ratioMax)}` : ''), 'right'],
  ['bar', barText, 'right'],
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
