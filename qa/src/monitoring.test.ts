/** The alerts and the dashboard in `deploy/` name only metrics that exist. `monitoring.slow.test.ts` runs them in Prometheus. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { ROOT } from './daemons/bundle.ts'
import { alertNames, dashboardExpressions, metricsIn, RULE_TESTS, RULES } from './monitoring.ts'

const read = (path: string): string => readFileSync(path, 'utf8')
const known = new Set([...read(join(ROOT, 'docs/metrics.md')).matchAll(/^\| `(\w+)` \|/gm)].map(([, name]) => name))

test.each([
  ['the alerts', read(RULES)],
  ['the tests of the alerts', read(RULE_TESTS)],
  ['the dashboard', JSON.stringify(dashboardExpressions())],
])('%s name only metrics of docs/metrics.md', (_, text) => {
  const named = metricsIn(text)
  expect(named.length).toBeGreaterThan(10)
  expect(named.filter((name) => !known.has(name))).toEqual([])
})

test('each alert has a test that raises it, and a row in the guide', () => {
  const guide = read(join(ROOT, 'docs/guides/monitoring.md'))
  const tests = read(RULE_TESTS)
  const alerts = alertNames()
  expect(alerts.length).toBeGreaterThan(10)
  expect(alerts.filter((name) => !tests.includes(`'{alertname="${name}"}'`))).toEqual([])
  expect(alerts.filter((name) => !guide.includes(`| \`${name}\` |`))).toEqual([])
})

test('the dashboard asks for the instances that its reader selects', () => {
  const expressions = dashboardExpressions()
  expect(expressions.length).toBeGreaterThan(30)
  expect(expressions.filter(({ expr }) => !expr.includes('instance=~"$instance"'))).toEqual([])
})
