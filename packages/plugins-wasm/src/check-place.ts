/** Keeps the plugin folder out of the agent's reach: every plugin in it is loaded, so no tool may write there. */
import { realpath } from 'node:fs/promises'
import { basename, dirname, isAbsolute, join, relative } from 'node:path'
import { AppError } from '@sluice/sdk'

/**
 * Throws `config_invalid` when `path` is inside the workspace. The data directory is allowed even inside the workspace, because
 * tools cannot write there.
 */
export async function checkPlace(path: string, workspaceRoot: string, dataDir: string): Promise<void> {
  const [folder = path, root = '', data = ''] = await Promise.all([path, workspaceRoot, dataDir].map(withoutLinks))
  if (!isWithin(root, folder) || (isWithin(data, folder) && !isWithin(data, root))) return
  throw new AppError(
    'config_invalid',
    `[plugins] plugins_dir must not be inside the workspace, where the agent can write; got '${path}'. Remove the key, or set a folder outside.`,
  )
}

const isWithin = (folder: string, path: string): boolean => {
  const below = relative(folder, path)
  return below === '' || (!isAbsolute(below) && below.split(/[\\/]/)[0] !== '..')
}

/** Resolves the symbolic links of the part of the path that exists. */
const withoutLinks = (path: string): Promise<string> =>
  realpath(path).catch(async () => (dirname(path) === path ? path : join(await withoutLinks(dirname(path)), basename(path))))
