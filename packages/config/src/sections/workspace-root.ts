/** Resolves the folder that tools work in. */
import { homedir } from 'node:os'
import { join, resolve } from 'node:path'
import type { LoadedConfig } from '../types.ts'
import { agentSection } from './main-agent-sections.ts'

/** Returns the absolute path of the workspace. A relative `[agent] workspace` is below the data directory. */
export const workspaceRoot = (config: LoadedConfig, dataDir: string): string =>
  resolve(dataDir, expandHome(config.core(agentSection).workspace ?? join(dataDir, 'workspace')))

/** Replaces a leading `~` by the home folder of the user. */
export const expandHome = (path: string): string => (path === '~' || path.startsWith('~/') ? join(homedir(), path.slice(1)) : path)
