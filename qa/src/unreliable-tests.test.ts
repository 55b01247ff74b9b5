/** The list of unreliable test files in docs/unreliable-tests.md, and when CI fails because of it. */
import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { expect, test } from 'vitest'

const ROOT = resolve(import.meta.dirname, '../..')
const { readUnreliable, problemsOf } = (await import(join(ROOT, 'scripts/unreliable-tests.mjs'))) as {
  readUnreliable(root: string): Row[]
  problemsOf(listed: readonly Row[], found: { readonly unreliable: readonly string[]; readonly today: Date }): string[]
}

interface Row {
  readonly file: string
  readonly date: string
  readonly cause: string
}

const row: Row = { file: 'packages/a/src/a.test.ts', date: '2030-01-10', cause: 'a race' }
const today = new Date('2030-01-17T23:00:00Z')

test('every row of the page names a file that is there, with a day and a cause', () => {
  const listed = readUnreliable(ROOT)
  expect(listed.filter(({ file }) => !existsSync(join(ROOT, file)))).toEqual([])
  expect(problemsOf(listed, { unreliable: [], today: new Date(0) })).toEqual([])
})

test.each([
  ['a row of seven days', [row], [], []],
  ['a row of eight days', [{ ...row, date: '2030-01-09' }], [], [/a\.test\.ts stands in .* for 8 days/]],
  ['a file in two rows', [row, row], [], [/a\.test\.ts was unreliable twice/]],
  ['a listed file that failed and passed again', [row], [row.file], [/a\.test\.ts was unreliable twice/]],
  ['a file that failed and passed for the first time', [], [row.file], []],
  ['a row without a cause', [{ ...row, cause: '' }], [], [/no cause/]],
  ['a row without a date', [{ ...row, date: 'soon' }], [], [/no date/]],
])('%s', (_, listed, unreliable, expected) => {
  expect(problemsOf(listed, { unreliable, today })).toEqual(expected.map((pattern) => expect.stringMatching(pattern)))
})
