/** Returns the configuration in force as plain data under its TOML paths, with secrets as `[secret]`. */
import { type Feature, type Section, sectionsOfFeature } from '@sluice/sdk'
import type { LoadedConfig } from '../types.ts'

/** `unconfigured` returns the values of a section that is not configured; default: none. */
export function effectiveConfig(
  config: LoadedConfig,
  features: readonly Feature[],
  core: readonly Section[],
  unconfigured: (feature: Feature, path: string) => object | undefined = () => undefined,
): Record<string, unknown> {
  const root: Record<string, unknown> = {}
  for (const section of core) merge(root, section.path, config.core(section))
  for (const feature of features) {
    for (const { path } of sectionsOfFeature(feature)) {
      const state = config.of(feature.id, path)
      const value = state.state === 'unconfigured' ? unconfigured(feature, path) : state.value
      if (value) merge(root, path, value)
    }
  }
  return root
}

function merge(root: Record<string, unknown>, path: string, value: object): void {
  let table = root
  for (const step of path.split('.')) {
    table[step] ??= {}
    table = table[step] as Record<string, unknown>
  }
  Object.assign(table, JSON.parse(JSON.stringify(value)))
}
