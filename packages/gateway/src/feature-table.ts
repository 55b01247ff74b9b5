/** The rows of `sluice features`, for a command that has no daemon: builds and registers the features to see how they stand. */
import { openRuntime, type RuntimeOptions } from './open-runtime.ts'
import type { FeatureStatus } from './runtime.ts'

export async function featureTable(options: RuntimeOptions): Promise<readonly FeatureStatus[]> {
  const runtime = await openRuntime({ ...options, quiet: true })
  try {
    return runtime.live().features
  } finally {
    await runtime.close(0)
  }
}
