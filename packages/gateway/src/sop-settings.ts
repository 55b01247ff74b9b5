/** Where procedures are, and how they run where they do not say. */
import { homedir } from 'node:os'
import { sopSection, sopsFolder } from '@sluice/sop/config'
import type { LoadedConfig } from './config/types.ts'
import { workspaceRoot } from './workspace-root.ts'

export function sopSettings(config: LoadedConfig, dataDir: string) {
  const section = config.core(sopSection)
  return {
    folder: sopsFolder(section, { workspace: workspaceRoot(config, dataDir), home: homedir() }),
    defaultMode: section.default_execution_mode,
  } as const
}
