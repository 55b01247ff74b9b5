import { expect, test } from 'vitest'
import { caseTimeoutSecs, findCases } from './find-cases.ts'

test('every case can be imported on the host and has tests', async () => {
  const cases = await findCases([])
  expect(cases.map(({ name }) => name)).toContain('machine')
  for (const { name, definition } of cases) expect(Object.keys(definition.tests).length, name).toBeGreaterThan(0)
})

test('an unknown name is an error that lists the cases', async () => {
  await expect(findCases(['no-such'])).rejects.toThrow(/unknown case 'no-such'; the cases are .*machine/)
})

test('the time limit of a case covers all its tests', () => {
  expect(caseTimeoutSecs({ testTimeoutSecs: 5, tests: { a: () => {}, b: () => {} } })).toBe(40)
})
