/** The files for Prometheus and Grafana in `deploy/`, and the expressions in them. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { ROOT } from './daemons/bundle.ts'

export const RULES = join(ROOT, 'deploy/prometheus/sluice.rules.yml')
export const RULE_TESTS = join(ROOT, 'deploy/prometheus/sluice.rules.test.yml')
const DASHBOARD = join(ROOT, 'deploy/grafana/sluice.json')

interface Panel {
  readonly title: string
  readonly targets?: readonly { readonly expr: string }[]
}

/** Returns every expression of the dashboard, with the title of its panel. */
export function dashboardExpressions(): readonly { readonly panel: string; readonly expr: string }[] {
  const { panels, annotations } = JSON.parse(readFileSync(DASHBOARD, 'utf8')) as {
    panels: readonly Panel[]
    annotations: { list: readonly { name: string; expr: string }[] }
  }
  return [
    ...panels.flatMap(({ title, targets = [] }) => targets.map(({ expr }) => ({ panel: title, expr }))),
    ...annotations.list.map(({ name, expr }) => ({ panel: name, expr })),
  ]
}

/** Returns the names of the alerts. */
export const alertNames = (): readonly string[] =>
  [...readFileSync(RULES, 'utf8').matchAll(/^ +- alert: (\w+)$/gm)].map(([, name = '']) => name)

/** Returns the metrics that a text names, without the endings of histograms. */
export const metricsIn = (text: string): readonly string[] => [
  ...new Set((text.match(/\b(?:sluice|process|nodejs)_[a-z_]+/g) ?? []).map((name) => name.replace(/_(?:bucket|sum|count)$/, ''))),
]
