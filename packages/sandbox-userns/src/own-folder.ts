/** A folder for one build of the sandbox, since a doctor may run beside the daemon. */
import { mkdir, mkdtemp, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'

/** Makes one; those of processes that ended without removing theirs go. */
export async function ownFolder(folder: string): Promise<string> {
  await mkdir(folder, { recursive: true, mode: 0o700 })
  for (const name of await readdir(folder)) {
    const pid = Number(/^(\d+)-/.exec(name)?.[1])
    if (pid > 0 && !isAlive(pid)) await rm(join(folder, name), { recursive: true, force: true })
  }
  return mkdtemp(join(folder, `${process.pid}-`))
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}
