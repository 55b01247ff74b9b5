/** Finds files in the data directory that configure a feature which this build leaves out. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { buildHint, type FeatureId, ROWS } from '@sluice/sdk'

export interface LeftOutFile {
  readonly file: string
  readonly feature: FeatureId
  readonly build: string
}

export const leftOutFiles = (dataDir: string, compiled: readonly FeatureId[]): LeftOutFile[] =>
  ROWS.flatMap(([feature, { file }]) => {
    const path = file === undefined || compiled.includes(feature) ? undefined : join(dataDir, file)
    return path !== undefined && existsSync(path) ? [{ file: path, feature, build: buildHint(feature) }] : []
  })
