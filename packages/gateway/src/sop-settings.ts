/** Where procedures are, which paths they may listen on, and how they run where they do not say. */
import { realpathSync } from 'node:fs'
import { homedir } from 'node:os'
import { sep } from 'node:path'
import type { LibrarySettings } from '@sluice/sop'
import { sopSection, sopsFolders } from '@sluice/sop/config'
import type { LoadedConfig } from './config/types.ts'
import { createPathRule } from './trigger-paths.ts'
import { workspaceRoot } from './workspace-root.ts'

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

/** Tools write in the workspace, but never in the data directory around it. */
function canAgentWrite(folder: string, { workspace, dataDir }: { readonly workspace: string; readonly dataDir: string }): boolean {
  const [inner, root, data] = [folder, workspace, dataDir].map(withoutLinks)
  if (inner === undefined || root === undefined || data === undefined || !isWithin(root, inner)) return false
  return isWithin(data, root) || !isWithin(data, inner)
}

const isWithin = (folder: string, path: string): boolean => path === folder || path.startsWith(folder.endsWith(sep) ? folder : folder + sep)

/** The path without links, as far as it exists. */
function withoutLinks(path: string): string {
  try {
    return realpathSync(path)
  } catch {
    const cut = path.lastIndexOf(sep)
    return cut <= 0 ? path : withoutLinks(path.slice(0, cut)) + path.slice(cut)
  }
}
