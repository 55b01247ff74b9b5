/** What `sluice doctor` says of where things lie: commands of the agent write in the workspace, and see the folders of programs. */
import { access, constants, realpath } from 'node:fs/promises'
import { sep } from 'node:path'
import { errorText } from '@sluice/sdk'
import { type Check, fail, ok, warn } from './check.ts'

export interface Private {
  readonly dataDir: string
  /** It may not be there. */
  readonly configFile: string
}

/** Shown in every sandbox, but for the data directory where it lies in one. */
const PROGRAMS = ['/usr', '/opt', '/nix']

export async function checkWorkspace(root: string, { dataDir, configFile }: Private): Promise<Check> {
  try {
    await access(root, constants.R_OK | constants.W_OK | constants.X_OK)
    if (await holds(root, dataDir)) {
      const detail = `the data directory lies in ${root}, so commands reach its keys, whatever the sandbox`
      return fail('workspace', detail, 'set [agent] workspace to a folder without it')
    }
    if (await holds(root, configFile)) {
      const detail = `${configFile} lies in it, so commands may change what they are allowed`
      return fail('workspace', detail, 'keep the configuration in the data directory')
    }
    return ok('workspace', root)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return ok('workspace', `${root}, made at the first write`)
    return fail('workspace', `${root}: ${errorText(error)}`, 'make it writable for this user, or set [agent] workspace')
  }
}

/** Nothing where commands cannot read the configuration. */
export async function checkConfigPlace({ dataDir, configFile }: Private, programs: readonly string[] = PROGRAMS): Promise<Check[]> {
  if (await holds(dataDir, configFile)) return []
  const shown = await Promise.all(programs.map((folder) => holds(folder, configFile)))
  if (!shown.includes(true)) return []
  return [warn('config', `${configFile} can be read by commands, whatever the sandbox`, 'keep it in the data directory or below /etc')]
}

/** False where one of them is not there. */
async function holds(folder: string, other: string): Promise<boolean> {
  const [above, below] = await Promise.all([folder, other].map((path) => realpath(path).catch(() => undefined)))
  if (above === undefined || below === undefined) return false
  return `${below}${sep}`.startsWith(above.endsWith(sep) ? above : `${above}${sep}`)
}
