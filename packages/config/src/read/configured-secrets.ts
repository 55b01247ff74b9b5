/** Collects every secret of the configuration, so that they can be masked in output. */
import { type Feature, Secret, type Section, sectionsOfFeature } from '@sluice/sdk'
import { CORE_SECTIONS } from '../sections/core-sections.ts'
import type { LoadedConfig } from '../types.ts'

export function configuredSecrets(config: LoadedConfig, features: readonly Feature[]): Secret[] {
  const core = CORE_SECTIONS.map((section: Section): unknown => config.core(section))
  const own = features.flatMap((feature) =>
    sectionsOfFeature(feature).map(({ path }): unknown => {
      const state = config.of(feature.id, path)
      return state.state === 'unconfigured' ? undefined : state.value
    }),
  )
  return [...core, ...own].flatMap(secretsIn)
}

const secretsIn = (value: unknown): Secret[] => {
  if (value instanceof Secret) return [value]
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(secretsIn) : []
}
