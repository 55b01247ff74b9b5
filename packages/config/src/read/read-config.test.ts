import { expect, test } from 'vitest'
import { parseConfig } from './read-config.ts'

test('reports each left-out observability backend with its build command', async () => {
  const source = { configFile: '/nowhere/config.toml', dataDir: '/nowhere', features: [], env: {} }
  const { leftOut } = await parseConfig(source, '[observability]\nbackend = "textmetrics"\nbackends = ["log", "otlp"]\n')
  expect(leftOut.map(({ section, feature }) => [section, feature])).toEqual([
    ['observability', 'observability-metrics'],
    ['observability', 'observability-otel'],
  ])
})
