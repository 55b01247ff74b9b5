/** The folder that tools work in. */
import { homedir } from 'node:os'
import { join, resolve } from 'node:path'
import { agentSection } from './agent-sections.ts'
import type { LoadedConfig } from './types.ts'

/** Absolute; a relative `[agent] workspace` is below the data directory. */
export const workspaceRoot = (config: LoadedConfig, dataDir: string): string =>
  resolve(dataDir, expandHome(config.core(agentSection).workspace ?? join(dataDir, 'workspace')))

/** A leading `~` is the home folder of this user. */
export const expandHome = (path: string): string => (path === '~' || path.startsWith('~/') ? join(homedir(), path.slice(1)) : path)
