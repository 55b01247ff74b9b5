import { expect, test } from 'vitest'
import { caseTimeoutSecs, findCases } from './find-cases.ts'

test('every case of the repository can be imported on the host, and has tests', async () => {
  const cases = await findCases([])
  expect(cases.map(({ name }) => name)).toContain('machine')
  for (const { name, definition } of cases) expect(Object.keys(definition.tests).length, name).toBeGreaterThan(0)
})

test('a name that there is no case of is an error that lists those there are', async () => {
  await expect(findCases(['no-such'])).rejects.toThrow(/no case 'no-such'; there are .*machine/)
})

test('a case may take as long as all its tests', () => {
  expect(caseTimeoutSecs({ testTimeoutSecs: 5, tests: { a: () => {}, b: () => {} } })).toBe(40)
})
