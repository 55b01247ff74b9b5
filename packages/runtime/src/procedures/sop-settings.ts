/** Where procedures are, which paths they may listen on, and how they run where they do not say. */
import { homedir } from 'node:os'
import type { LoadedConfig } from '@sluice/config'
import { sopSection, sopsFolders, workspaceRoot } from '@sluice/config'
import type { LibrarySettings } from '@sluice/sop'
import { canAgentWrite } from '../workspace/agent-writable.ts'
import { createPathRule } from './trigger-paths.ts'

export function sopSettings(config: LoadedConfig, dataDir: string): LibrarySettings {
  const section = config.core(sopSection)
  const workspace = workspaceRoot(config, dataDir)
  const [meant, inWorkspace] = sopsFolders(section, { dataDir, workspace, home: homedir() })
  const isAgentWritable = canAgentWrite(meant, { workspace, dataDir })
  const [first, second] = [
    { folder: meant, isAgentWritable },
    { folder: inWorkspace, isAgentWritable: true },
  ]
  return {
    sources: meant === inWorkspace ? [first] : [first, second],
    defaultMode: section.default_execution_mode,
    pathProblem: createPathRule(section.take_over),
  }
}
