/** The table of `sluice features`: each feature of the catalogue, and its state in this build and configuration. */

import type { LeftOut } from '@sluice/config'
import { buildHint, type FeatureId, ROWS, rowOf } from '@sluice/sdk'
import type { FeatureState, Instance } from './instance.ts'

/** One row of `sluice features`. */
export interface FeatureStatus {
  readonly feature: FeatureId
  readonly flag: string | null
  readonly kind: string
  /** True: this build contains the feature. */
  readonly compiled: boolean
  /** True: its package is in this release, and this machine has what the feature needs. */
  readonly installed: boolean
  readonly configured: boolean
  readonly state: FeatureState
  /** Why it is not ready; null when it is. */
  readonly reason: string | null
  /** The command that makes a build with the feature; null when it is compiled in. */
  readonly build: string | null
}

export function featureStatuses(instances: readonly Instance[], leftOut: readonly LeftOut[]): FeatureStatus[] {
  const built = new Map(instances.map((instance) => [instance.feature.id as string, instance]))
  const rows = ROWS.map(([id, row]): FeatureStatus => {
    const instance = built.get(id)
    if (instance) return statusOf(instance, row.flag, row.kind)
    return {
      feature: id,
      flag: row.flag,
      kind: row.kind,
      compiled: false,
      installed: true,
      configured: leftOut.some(({ feature }) => feature === id),
      state: 'left_out',
      reason: 'this build leaves it out',
      build: buildHint(id),
    }
  })
  const own = instances
    .filter(({ feature }) => !rowOf(feature.id))
    .map((instance) => statusOf(instance, null, instance.feature.row?.kind ?? 'own'))
  return [...rows, ...own]
}

function statusOf(instance: Instance, flag: string | null, kind: string): FeatureStatus {
  const missing = instance.parts.missingRequirement?.()
  const state = instance.state()
  const isUnavailable = missing !== undefined && state === 'ready'
  return {
    feature: instance.feature.id,
    flag,
    kind,
    compiled: true,
    installed: missing === undefined,
    configured: instance.isConfigured,
    state: isUnavailable ? 'unavailable' : state,
    reason: isUnavailable ? missing : instance.reason(),
    build: null,
  }
}
