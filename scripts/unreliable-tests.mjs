// The list of unreliable test files in docs/unreliable-tests.md.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

const FILE = 'docs/unreliable-tests.md'
const DAYS_MAX = 7
const DAY_MS = 86_400_000

/** Returns the rows of the table: `| file | date | cause |`. */
export function readUnreliable(root) {
  const rows = readFileSync(join(root, FILE), 'utf8').match(/^\|.*\|$/gm) ?? []
  return rows.slice(2).map((row) => {
    const [file = '', date = '', cause = ''] = row
      .slice(1, -1)
      .split('|')
      .map((cell) => cell.trim().replaceAll('`', ''))
    return { file, date, cause }
  })
}

/**
 * Returns why a run of CI has to fail: a row without a date or a cause, a row older than seven days, a file that is listed twice, or one that is
 * listed and has failed and passed again in this run.
 */
export function problemsOf(listed, { unreliable, today }) {
  const files = [...listed.map(({ file }) => file), ...unreliable]
  const twice = new Set(files.filter((file, at) => files.indexOf(file) !== at))
  return [
    ...listed.flatMap(({ file, date, cause }) => {
      if (!/^\d{4}-\d\d-\d\d$/.test(date) || Number.isNaN(Date.parse(date))) return [`${FILE} has no date for ${file}`]
      if (cause === '') return [`${FILE} has no cause for ${file}`]
      const days = Math.floor((today.getTime() - Date.parse(date)) / DAY_MS)
      return days > DAYS_MAX ? [`${file} stands in ${FILE} for ${days} days; repair it, or remove the test`] : []
    }),
    ...[...twice].map((file) => `${file} was unreliable twice; repair it, or remove the test`),
  ]
}
