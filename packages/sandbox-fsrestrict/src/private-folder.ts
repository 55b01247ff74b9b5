/** A folder of its own for each command's temporary files: Landlock can hide /tmp, but not put another in its place. */
import { mkdir, mkdtemp, readdir, realpath, rm } from 'node:fs/promises'
import { join } from 'node:path'

/** Absolute, resolved, for us alone; below `folder`. */
export async function createPrivateFolder(folder: string): Promise<string> {
  await mkdir(folder, { recursive: true, mode: 0o700 })
  return realpath(await mkdtemp(join(folder, `${process.pid}-`)))
}

export const removeFolder = (path: string): Promise<void> => rm(path, { recursive: true, force: true })

/** Removes those of daemons that were killed. */
export async function removeStaleFolders(folder: string): Promise<void> {
  for (const name of await readdir(folder).catch(() => [])) {
    const pid = /^(\d+)-/.exec(name)?.[1]
    if (pid !== undefined && !isAlive(Number(pid))) await removeFolder(join(folder, name))
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}
