/** Reads the configuration for a command; kept apart from what runs features, which is much more to load. */
import { readConfig } from '@sluice/config'
import type { CliContext } from './context.ts'

export const configFromContext = ({ configFile, dataDir, env, features }: CliContext) => readConfig({ configFile, dataDir, env, features })
