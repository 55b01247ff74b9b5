/** Keeps the plugin folder out of the agent's reach: every plugin in it is loaded, so no tool may write there. */
import { isWithin, withoutLinks } from '@sluice/kit'
import { AppError } from '@sluice/sdk'

/**
 * Throws `config_invalid` when `path` is inside the workspace. The data directory is allowed even inside the workspace, because
 * tools cannot write there.
 */
export async function checkPlace(path: string, workspaceRoot: string, dataDir: string): Promise<void> {
  const [folder = path, root = '', data = ''] = await Promise.all([path, workspaceRoot, dataDir].map(withoutLinks))
  if (!isWithin(folder, root) || (isWithin(folder, data) && !isWithin(root, data))) return
  throw new AppError(
    'config_invalid',
    `[plugins] plugins_dir must not be inside the workspace, where the agent can write; got '${path}'. Remove the key, or set a folder outside.`,
  )
}
