/** Returns the configuration in force as plain data under its TOML paths, with secrets as `[secret]`. */
import type { Feature, Section } from '@sluice/sdk'
import type { LoadedConfig } from './types.ts'

export function effectiveConfig(config: LoadedConfig, features: readonly Feature[], core: readonly Section[]): Record<string, unknown> {
  const root: Record<string, unknown> = {}
  for (const section of core) merge(root, section.path, config.core(section))
  for (const { id, section } of features) {
    const state = config.of(id)
    if (section && state.state !== 'unconfigured') merge(root, section.path, state.value)
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
