/** Opens the configuration or the whole runtime for a command. */
import type { Approver } from '@sluice/agent'
import { openRuntime, readConfig } from '@sluice/gateway'
import type { CliContext } from './context.ts'

export const configFromContext = ({ configFile, dataDir, env, features }: CliContext) => readConfig({ configFile, dataDir, env, features })

/** Everything but the HTTP side. The caller closes it. */
export const openFromContext = (context: CliContext, approve?: Approver) => {
  const { configFile, dataDir, env, features, profile, version } = context
  return openRuntime({ configFile, dataDir, env, features, profile, version, quiet: true, ...(approve ? { approve } : {}) })
}
