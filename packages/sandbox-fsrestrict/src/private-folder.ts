/** A folder of its own for each command's temporary files: Landlock can hide /tmp, but not put another in its place. */
import { randomUUID } from 'node:crypto'
import { mkdir, readdir, realpath, rm } from 'node:fs/promises'
import { join } from 'node:path'

/** Makes the folder that holds them, for us alone, and removes what daemons that were killed left in it; its path without links. */
export async function preparePrivateFolders(folder: string): Promise<string> {
  await mkdir(folder, { recursive: true, mode: 0o700 })
  for (const name of await readdir(folder)) {
    const pid = /^(\d+)-/.exec(name)?.[1]
    if (pid !== undefined && !isAlive(Number(pid))) await removeFolder(join(folder, name))
  }
  return realpath(folder)
}

export async function createPrivateFolder(folder: string): Promise<string> {
  const path = join(folder, `${process.pid}-${randomUUID()}`)
  await mkdir(path, { mode: 0o700 })
  return path
}

export const removeFolder = (path: string): Promise<void> => rm(path, { recursive: true, force: true })

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}
