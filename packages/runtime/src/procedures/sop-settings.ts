/** The settings of procedures: their folders, the paths that their triggers may name, and their default mode. */
import { homedir } from 'node:os'
import type { LoadedConfig } from '@sluice/config'
import { sopSection, sopsFolders, workspaceRoot } from '@sluice/config'
import type { LibrarySettings } from '@sluice/sop'
import { canAgentWrite } from '../workspace/agent-writable.ts'
import { createPathRule } from './trigger-paths.ts'

export function sopSettings(config: LoadedConfig, dataDir: string): LibrarySettings {
  const section = config.core(sopSection)
  const workspace = workspaceRoot(config, dataDir)
  const [configured, inWorkspace] = sopsFolders(section, { dataDir, workspace, home: homedir() })
  const isAgentWritable = canAgentWrite(configured, { workspace, dataDir })
  const [first, second] = [
    { folder: configured, isAgentWritable },
    { folder: inWorkspace, isAgentWritable: true },
  ]
  return {
    sources: configured === inWorkspace ? [first] : [first, second],
    defaultMode: section.default_execution_mode,
    pathProblem: createPathRule(section.take_over),
  }
}
