/** What tells that a folder of procedures is another than before, for where changes cannot be heard of. */
import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { inPool } from './in-pool.ts'

const AT_ONCE = 16

/** Only the folder's own look where everything in it is listened to; else that of every procedure's files. */
export async function folderMark(folder: string, { isComplete }: { readonly isComplete: boolean }): Promise<string> {
  const own = await look(folder)
  if (isComplete) return own
  const names = await readdir(folder).catch(() => [])
  const looks = await inPool(names.sort(), AT_ONCE, async (name) => {
    const files = ['SOP.toml', 'SOP.md'].map((file) => look(join(folder, name, file)))
    return [name, ...(await Promise.all(files))].join()
  })
  return [own, ...looks].join('\n')
}

/** Changes whenever what stands there does, or something else takes its place. */
async function look(path: string): Promise<string> {
  try {
    const { dev, ino, size, mtimeNs, ctimeNs } = await stat(path, { bigint: true })
    return [dev, ino, size, mtimeNs, ctimeNs].join()
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? 'unknown'
  }
}
