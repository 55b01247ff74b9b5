/** Finds out whether the agent's tools can write a file: the daemon loads such a file only after an operator agrees. */
import { realpathSync } from 'node:fs'
import { sep } from 'node:path'
import { isWithin } from '@sluice/kit'

/** Tools can write in the workspaces of the agents, but not in a data directory inside one. */
export function canAgentWrite(
  path: string,
  { workspaces, dataDir }: { readonly workspaces: readonly string[]; readonly dataDir: string },
): boolean {
  const [inner, data] = [withoutLinks(path), withoutLinks(dataDir)]
  return workspaces.map(withoutLinks).some((root) => isWithin(inner, root) && (isWithin(root, data) || !isWithin(inner, data)))
}

/** The path without links; a part that does not exist stays as it is. */
function withoutLinks(path: string): string {
  try {
    return realpathSync(path)
  } catch {
    const cut = path.lastIndexOf(sep)
    return cut <= 0 ? path : withoutLinks(path.slice(0, cut)) + path.slice(cut)
  }
}
