/** Where tools of the agent can write: nothing that the daemon loads from there is in force before an operator agrees. */
import { realpathSync } from 'node:fs'
import { sep } from 'node:path'

/** Tools write in the workspace, but never in the data directory around it. */
export function canAgentWrite(path: string, { workspace, dataDir }: { readonly workspace: string; readonly dataDir: string }): boolean {
  const [inner, root, data] = [path, workspace, dataDir].map(withoutLinks)
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
