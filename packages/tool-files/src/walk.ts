/** Visits the files below a folder of the workspace, folder by folder, sorted by name. */
import { AppError, type Workspace, type WorkspaceEntry } from '@sluice/sdk'
import { IGNORE_FILE, type IgnoreRule, rulesAround, rulesIn } from './ignore-rules.ts'

const ENTRIES_MAX = 10_000
/** Folders that a search enters only when its path names them. */
const SKIPPED = new Set(['.git', 'node_modules'])

export interface VisitedFolder {
  /** The prefix of the names of the files: empty, or the path of the folder with a slash. */
  readonly prefix: string
  readonly names: readonly string[]
  /** Whether a `.gitignore` leaves out files or folders of this folder. */
  readonly leavesOut: boolean
}

/** Resolves to the paths that the rules keep. */
export type Keep = (paths: readonly string[], rules: readonly IgnoreRule[]) => Promise<readonly string[]>

interface WaitingFolder {
  readonly prefix: string
  readonly entries: readonly WorkspaceEntry[] | undefined
  readonly rules: readonly IgnoreRule[]
}

/**
 * Starts at a folder without a slash at its end, or at a single file. Folders that cannot be entered are left out, except for the first.
 * Without `keep`, no `.gitignore` counts.
 */
export async function* walk(workspace: Workspace, path: string, keep?: Keep): AsyncGenerator<VisitedFolder> {
  const first = await entriesOf(workspace, path).catch((error: unknown) => {
    if (error instanceof AppError && error.code === 'not_found') return undefined
    throw error
  })
  if (!first) {
    // Throws when no such file exists either.
    await using _file = await workspace.open(path, { bytesMax: Number.POSITIVE_INFINITY })
    const slash = path.lastIndexOf('/') + 1
    yield { prefix: path.slice(0, slash), names: [path.slice(slash)], leavesOut: false }
    return
  }
  const start = path === '.' ? '' : `${path}/`
  const waiting: WaitingFolder[] = [{ prefix: start, entries: first, rules: keep ? await rulesAround(workspace, start) : [] }]
  for (let folder = waiting.pop(); folder; folder = waiting.pop()) {
    const { prefix } = folder
    const entries = folder.entries ?? (await entriesOf(workspace, prefix.slice(0, -1)).catch(() => []))
    const hasRules = keep !== undefined && entries.some(({ name }) => name === IGNORE_FILE)
    const rules = hasRules ? [...folder.rules, ...(await rulesIn(workspace, prefix))] : folder.rules
    const kept = keep && rules.length > 0 ? await keptOf(entries, { ...folder, rules }, keep) : entries
    const leavesOut = kept.length < entries.length
    yield { prefix, names: kept.filter(({ kind }) => kind === 'file').map(({ name }) => name), leavesOut }
    const folders = kept.filter(({ name, kind }) => kind === 'folder' && !SKIPPED.has(name))
    waiting.push(...folders.toReversed().map(({ name }) => ({ prefix: `${prefix}${name}/`, entries: undefined, rules })))
  }
}

async function keptOf(
  entries: readonly WorkspaceEntry[],
  { prefix, rules }: WaitingFolder,
  keep: Keep,
): Promise<readonly WorkspaceEntry[]> {
  const pathOf = ({ name, kind }: WorkspaceEntry): string => `${prefix}${name}${kind === 'folder' ? '/' : ''}`
  const kept = new Set(await keep(entries.map(pathOf), rules))
  return entries.filter((entry) => kept.has(pathOf(entry)))
}

const entriesOf = async (workspace: Workspace, path: string) => (await workspace.list(path, { limit: ENTRIES_MAX })).entries
