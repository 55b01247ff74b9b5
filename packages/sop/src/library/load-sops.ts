/** Loads all procedures of their source folders. A problem of one procedure never affects another. */
import { readdir, realpath } from 'node:fs/promises'
import { join } from 'node:path'
import { locateFindings } from '@sluice/config'
import { mapConcurrently } from '@sluice/kit'
import { asError, type SopDefinition, type SopProblem } from '../definition/definition.ts'
import type { Agreed } from './agreements.ts'
import type { LoadRules } from './load-rules.ts'
import type { LoadedSop, WaitingSop } from './load-sop.ts'

/** The result for all folders. */
export interface LoadedSops {
  /** Sorted by name. */
  readonly definitions: readonly SopDefinition[]
  /** Grouped by folder. */
  readonly problems: readonly SopProblem[]
  /** The number of folders with errors. */
  readonly broken: number
  /** The procedures that are not loaded because an operator has not agreed to their content. */
  readonly waiting: readonly WaitingSop[]
}

/** A folder that holds a folder for each procedure. */
export interface SopSource {
  /** An absolute path. A missing folder is the same as an empty one. */
  readonly folder: string
  /** True when tools of the agent can write there; then an operator has to agree to each procedure. */
  readonly isAgentWritable: boolean
}

export interface LoadSopsOptions extends LoadRules {
  /** For a name that several sources define, the first source wins. */
  readonly sources: readonly SopSource[]
  readonly agreed: Agreed
}

/** The largest number of procedures in one source. */
export const SOPS_MAX = 20_000
const READS_AT_ONCE = 16

/** Loads the procedures of all sources. A procedure with errors is reported and not loaded. Never throws. */
export async function loadSops(options: LoadSopsOptions): Promise<LoadedSops> {
  const loaded: LoadedSops[] = []
  for (const source of options.sources) loaded.push(await loadSource(source, options.agreed, options))
  const definitions = new Map<string, SopDefinition>()
  const shadowed: SopProblem[] = []
  for (const definition of loaded.flatMap((source) => source.definitions)) {
    const first = definitions.get(definition.name)
    if (!first) definitions.set(definition.name, definition)
    else shadowed.push(asShadowed(definition, first))
  }
  return {
    definitions: [...definitions.values()].sort((a, b) => (a.name < b.name ? -1 : 1)),
    problems: [...loaded.flatMap(({ problems }) => problems), ...shadowed],
    broken: loaded.reduce((sum, { broken }) => sum + broken, 0),
    waiting: loaded.flatMap(({ waiting }) => waiting),
  }
}

async function loadSource({ folder, isAgentWritable }: SopSource, agreed: Agreed, rules: LoadRules): Promise<LoadedSops> {
  const { root, names, problems } = await listFolders(folder)
  // The parsers of both files and of cron expressions are loaded for the first procedure.
  const read = await mapConcurrently(names, READS_AT_ONCE, async (name) => {
    const { loadSop } = await import('./load-sop.ts')
    const path = join(folder, name)
    return loadSop(path, root, rules, isAgentWritable ? (agreed.get(path) ?? null) : undefined)
  })
  const found = read.filter((sop) => sop !== undefined)
  const sops = await Promise.all(withTwins(found.filter(({ waiting }) => !waiting)).map(withoutTwin))
  return {
    definitions: sops.flatMap(({ definition }) => definition ?? []),
    problems: [...problems, ...sops.flatMap((sop) => sop.problems)],
    broken: problems.length + sops.filter(({ definition }) => !definition).length,
    waiting: found.flatMap(({ waiting }) => waiting ?? []),
  }
}

const asShadowed = ({ name, folder }: SopDefinition, first: SopDefinition): SopProblem => ({
  file: join(folder, 'SOP.toml'),
  message: `"${name}" is loaded from ${first.folder}; this one is not used`,
  severity: 'warning',
})

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
    const tooMany =
      names.length > SOPS_MAX ? [asError(folder, { message: `there are ${names.length} folders; only ${SOPS_MAX} are read` })] : []
    return { root, names: names.slice(0, SOPS_MAX), problems: tooMany }
  } catch (error) {
    const { code = 'unknown' } = error as NodeJS.ErrnoException
    const problems = code === 'ENOENT' ? [] : [asError(folder, { message: `this folder cannot be read (${code})` })]
    return { root: folder, names: [], problems }
  }
}

interface WithTwin {
  readonly sop: LoadedSop
  /** The folder of another procedure of the same name. */
  readonly twin: string | undefined
}

function withTwins(sops: readonly LoadedSop[]): WithTwin[] {
  const byName = Map.groupBy(sops, ({ definition }) => definition?.name)
  return sops.map((sop) => {
    const same = sop.definition ? byName.get(sop.definition.name) : undefined
    return { sop, twin: same?.find((other) => other !== sop)?.folder }
  })
}

/** Procedures of one source that share a name are all rejected: it would be arbitrary which one runs. */
async function withoutTwin({ sop: { definition, ...sop }, twin }: WithTwin): Promise<LoadedSop> {
  if (!definition) return sop
  if (twin === undefined) return { ...sop, definition }
  const file = join(sop.folder, 'SOP.toml')
  const message = `"${definition.name}" is also the name of the procedure in ${twin}; neither is loaded`
  const located = await locateFindings(file, sop.toml, [{ path: ['sop', 'name'], at: 'value', message }])
  return { ...sop, problems: [...sop.problems, ...located.map((problem) => asError(file, problem))] }
}
