/** Checks the workspace: commands of the agent write in it, so it must not contain the data directory or the configuration. */
import { access, constants, realpath } from 'node:fs/promises'
import { isWithin } from '@sluice/kit'
import { errorText } from '@sluice/sdk'
import { type Check, fail, ok } from './check.ts'

/** `configFile` need not exist. `section` is the section of the agent. */
export async function checkWorkspace(root: string, dataDir: string, configFile: string, section = 'agent'): Promise<Check> {
  try {
    await access(root, constants.R_OK | constants.W_OK | constants.X_OK)
    if (await contains(root, dataDir)) {
      const detail = `the data directory is inside ${root}, so commands reach its keys, whatever the sandbox`
      return fail('workspace', detail, `set [${section}] workspace to a folder without it`)
    }
    if (await contains(root, configFile)) {
      const detail = `it contains ${configFile}, so commands can change their own permissions`
      return fail('workspace', detail, 'keep the configuration in the data directory')
    }
    return ok('workspace', root)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return ok('workspace', `${root}, made at the first write`)
    return fail('workspace', `${root}: ${errorText(error)}`, `make it writable for this user, or set [${section}] workspace`)
  }
}

/** True if `path` is the folder or inside it, links followed. False if one of them does not exist. */
export async function contains(folder: string, path: string): Promise<boolean> {
  const [outer, inner] = await Promise.all([folder, path].map((each) => realpath(each).catch(() => undefined)))
  if (outer === undefined || inner === undefined) return false
  return isWithin(inner, outer)
}
