/** Visits the files below a folder of the workspace, folder by folder, sorted by name. */
import { AppError, type Workspace, type WorkspaceEntry } from '@sluice/sdk'

const ENTRIES_MAX = 10_000
/** Folders that a search enters only when its path names them. */
const SKIPPED = new Set(['.git', 'node_modules'])

export interface VisitedFolder {
  /** What stands before the names of the files: empty, or the path of the folder with a slash. */
  readonly prefix: string
  readonly names: readonly string[]
}

/** Starts at a folder without a slash at its end, or at a single file. Folders that cannot be entered are left out, except for the first. */
export async function* walk(workspace: Workspace, path: string): AsyncGenerator<VisitedFolder> {
  const first = await entriesOf(workspace, path).catch((error: unknown) => {
    if (error instanceof AppError && error.code === 'not_found') return undefined
    throw error
  })
  if (!first) {
    // Throws when there is no such file either.
    await using _file = await workspace.open(path, { bytesMax: Number.POSITIVE_INFINITY })
    const slash = path.lastIndexOf('/') + 1
    yield { prefix: path.slice(0, slash), names: [path.slice(slash)] }
    return
  }
  const waiting: { readonly prefix: string; readonly entries: readonly WorkspaceEntry[] | undefined }[] = [
    { prefix: path === '.' ? '' : `${path}/`, entries: first },
  ]
  for (let folder = waiting.pop(); folder; folder = waiting.pop()) {
    const { prefix } = folder
    const entries = folder.entries ?? (await entriesOf(workspace, prefix.slice(0, -1)).catch(() => []))
    yield { prefix, names: entries.filter(({ kind }) => kind === 'file').map(({ name }) => name) }
    const folders = entries.filter(({ name, kind }) => kind === 'folder' && !SKIPPED.has(name))
    waiting.push(...folders.toReversed().map(({ name }) => ({ prefix: `${prefix}${name}/`, entries: undefined })))
  }
}

const entriesOf = async (workspace: Workspace, path: string) => (await workspace.list(path, { limit: ENTRIES_MAX })).entries
