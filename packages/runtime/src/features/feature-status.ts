/** The table of `sluice features`: every feature there is, and how it stands in this build and configuration. */

import type { LeftOut } from '@sluice/config'
import { buildHint, type Feature, type FeatureId, ROWS, rowOf } from '@sluice/sdk'
import type { FeatureState, Instance } from './instance.ts'

/** One row of `sluice features`. */
export interface FeatureStatus {
  readonly feature: FeatureId
  readonly flag: string | null
  readonly kind: string
  /** In this build. */
  readonly compiled: boolean
  /** Its package is in this release, and what it needs is on this machine. */
  readonly installed: boolean
  readonly configured: boolean
  readonly state: FeatureState
  /** Why it is not ready; null when it is. */
  readonly reason: string | null
  /** How to get it; null when it is compiled in. */
  readonly build: string | null
}

export function featureStatuses(instances: readonly Instance[], leftOut: readonly LeftOut[]): FeatureStatus[] {
  const known = new Map(instances.map((instance) => [instance.feature.id as string, instance]))
  const rows = ROWS.map(([id, row]): FeatureStatus => {
    const instance = known.get(id)
    if (instance) return compiled(instance, row.flag, row.kind)
    return {
      feature: id,
      flag: row.flag,
      kind: row.kind,
      compiled: false,
      installed: !row.planned,
      configured: leftOut.some(({ feature }) => feature === id),
      state: 'left_out',
      reason: row.planned ? 'not part of this release' : 'this build leaves it out',
      build: buildHint(id),
    }
  })
  const own = instances.filter(({ feature }) => !rowOf(feature.id)).map((instance) => compiled(instance, null, 'own'))
  return [...rows, ...own]
}

function compiled(instance: Instance, flag: string | null, kind: string): FeatureStatus {
  const lacking = instance.parts.lacks?.()
  const state = instance.state()
  const isUnavailable = lacking !== undefined && state === 'ready'
  return {
    feature: instance.feature.id,
    flag,
    kind,
    compiled: true,
    installed: lacking === undefined,
    configured: instance.configured,
    state: isUnavailable ? 'unavailable' : state,
    reason: isUnavailable ? lacking : instance.reason(),
    build: null,
  }
}

/** Two features may not claim one id; the profile is at fault. */
export function duplicateFeature(features: readonly Feature[]): string | undefined {
  const ids = features.map(({ id }) => id)
  return ids.find((id, index) => ids.indexOf(id) !== index)
}
