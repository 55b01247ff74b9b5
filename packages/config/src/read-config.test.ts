import { expect, test } from 'vitest'
import { parseConfig } from './read-config.ts'

test('each observability backend whose feature the build lacks is reported with its build command', async () => {
  const source = { configFile: '/nowhere/config.toml', dataDir: '/nowhere', features: [], env: {} }
  const { leftOut } = await parseConfig(source, '[observability]\nbackend = "textmetrics"\nbackends = ["log", "otlp"]\n')
  expect(leftOut.map(({ section, feature }) => [section, feature])).toEqual([
    ['observability', 'observability-metrics'],
    ['observability', 'observability-otel'],
  ])
})
