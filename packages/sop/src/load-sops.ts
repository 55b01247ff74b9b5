/** All procedures of a folder (§4.3): each folder in it that has a `SOP.toml`. What is wrong with one never stops another. */
import { readdir, realpath } from 'node:fs/promises'
import { join } from 'node:path'
import { locateFindings } from '@sluice/toml'
import type { SopDefinition, SopProblem } from './definition.ts'
import { inPool } from './in-pool.ts'
import { asError, type LoadedSop, type LoadSopOptions, loadSop } from './load-sop.ts'

export interface LoadedSops {
  /** By name. */
  readonly definitions: readonly SopDefinition[]
  /** Folder by folder. */
  readonly problems: readonly SopProblem[]
  /** Folders with errors. */
  readonly broken: number
}

export interface LoadSopsOptions extends Omit<LoadSopOptions, 'root'> {
  /** Absolute; if there is none, there are no procedures. */
  readonly folder: string
}

export const SOPS_MAX = 20_000
const AT_ONCE = 16

/** Never throws. */
export async function loadSops({ folder, ...options }: LoadSopsOptions): Promise<LoadedSops> {
  const { root, names, problems } = await listFolders(folder)
  const read = await inPool(names, AT_ONCE, (name) => loadSop(join(folder, name), { ...options, root }))
  const sops = await Promise.all(withTwins(read.filter((sop) => sop !== undefined)).map(withoutTwin))
  return {
    definitions: sops.flatMap(({ definition }) => definition ?? []).sort((a, b) => (a.name < b.name ? -1 : 1)),
    problems: [...problems, ...sops.flatMap((sop) => sop.problems)],
    broken: problems.length + sops.filter(({ definition }) => !definition).length,
  }
}

interface Listing {
  readonly root: string
  readonly names: readonly string[]
  readonly problems: readonly SopProblem[]
}

async function listFolders(folder: string): Promise<Listing> {
  try {
    const root = await realpath(folder)
    const entries = await readdir(root, { withFileTypes: true })
    const found = entries.filter((entry) => !entry.name.startsWith('.') && (entry.isDirectory() || entry.isSymbolicLink()))
    const names = found.map(({ name }) => name).sort()
    const tooMany = names.length > SOPS_MAX ? [asError(folder, { message: `there are ${names.length} folders; ${SOPS_MAX} are read` })] : []
    return { root, names: names.slice(0, SOPS_MAX), problems: tooMany }
  } catch (error) {
    const { code = 'unknown' } = error as NodeJS.ErrnoException
    const problems = code === 'ENOENT' ? [] : [asError(folder, { message: `this folder cannot be read (${code})` })]
    return { root: folder, names: [], problems }
  }
}

interface WithTwin {
  readonly sop: LoadedSop
  /** The folder of another of the same name. */
  readonly twin: string | undefined
}

function withTwins(sops: readonly LoadedSop[]): WithTwin[] {
  const byName = Map.groupBy(sops, ({ definition }) => definition?.name)
  return sops.map((sop) => {
    const same = sop.definition ? byName.get(sop.definition.name) : undefined
    return { sop, twin: same?.find((other) => other !== sop)?.folder }
  })
}

/** Of those that share a name none is taken: which one would run would be chance. */
async function withoutTwin({ sop: { definition, ...sop }, twin }: WithTwin): Promise<LoadedSop> {
  if (!definition) return sop
  if (twin === undefined) return { ...sop, definition }
  const file = join(sop.folder, 'SOP.toml')
  const message = `"${definition.name}" is also the name of ${twin}; none of them is loaded`
  const located = await locateFindings(file, sop.toml, [{ path: ['sop', 'name'], at: 'value', message }])
  return { ...sop, problems: [...sop.problems, ...located.map((problem) => asError(file, problem))] }
}
