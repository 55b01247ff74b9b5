/** Where plugins must not be: whatever is in their folder is loaded, so no tool of the agent may write there. */
import { realpath } from 'node:fs/promises'
import { basename, dirname, isAbsolute, join, relative } from 'node:path'
import { AppError, type Host } from '@sluice/sdk'

/** Throws `config_invalid` for a folder in the workspace; the data directory is closed to tools, also where it lies in a workspace. */
export async function checkPlace(path: string, { workspace, dataDir }: Pick<Host, 'workspace' | 'dataDir'>): Promise<void> {
  const [folder = path, root = '', data = ''] = await Promise.all([path, workspace.root, dataDir].map(withoutLinks))
  if (!isWithin(root, folder) || (isWithin(data, folder) && !isWithin(data, root))) return
  throw new AppError(
    'config_invalid',
    `[plugins] plugins_dir must not be in the workspace, where the agent can write; got '${path}'. Leave it out, or name a folder elsewhere.`,
  )
}

const isWithin = (folder: string, path: string): boolean => {
  const below = relative(folder, path)
  return below === '' || (!isAbsolute(below) && below.split(/[\\/]/)[0] !== '..')
}

/** The path without links, as far as it exists. */
const withoutLinks = (path: string): Promise<string> =>
  realpath(path).catch(async () => (dirname(path) === path ? path : join(await withoutLinks(dirname(path)), basename(path))))
