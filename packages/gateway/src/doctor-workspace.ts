/** What `sluice doctor` says of the workspace: the folder that commands of the agent may read and write as a whole. */
import { access, constants, realpath } from 'node:fs/promises'
import { sep } from 'node:path'
import { errorText } from '@sluice/sdk'
import { type Check, fail, ok } from './doctor-check.ts'

export async function checkWorkspace(root: string, dataDir: string): Promise<Check> {
  try {
    await access(root, constants.R_OK | constants.W_OK | constants.X_OK)
    if (await holds(root, dataDir)) {
      const detail = `the data directory lies in ${root}, so commands reach its keys, whatever the sandbox`
      return fail('workspace', detail, 'set [agent] workspace to a folder without it')
    }
    return ok('workspace', root)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return ok('workspace', `${root}, made at the first write`)
    return fail('workspace', `${root}: ${errorText(error)}`, 'make it writable for this user, or set [agent] workspace')
  }
}

async function holds(folder: string, other: string): Promise<boolean> {
  const [above, below] = await Promise.all([realpath(folder), realpath(other)])
  return `${below}${sep}`.startsWith(above.endsWith(sep) ? above : `${above}${sep}`)
}
