/** Saves attachments, and counts what their owners keep. */
import { copyFile, lstat, mkdir, readdir, rename, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { SerialQueue } from '@sluice/kit'
import { ATTACHMENTS, attachmentPath, type NewAttachment, ownerFolder } from '@sluice/sdk'
import { attachmentsOf, poolFolder } from './owned-places.ts'

/** A smaller file counts as this much, so that small files without end have an end. */
export const COUNTED_BYTES_MIN = 16 * 1024

const SAVING_MAX = 1000

/** The attachments that are being saved for each owner or pool: two at once would both find room for one. */
const saving = new Map<string, SerialQueue>()

/** Resolves to the path of the attachment. `write` writes it. Rejects as `check` does. */
export async function attach(files: string, attachment: NewAttachment, write: (path: string) => Promise<void>): Promise<string> {
  const { owner, pool } = attachment
  const key = pool === undefined ? attachmentsOf(files, owner) : poolFolder(files, pool)
  const queue = saving.get(key) ?? new SerialQueue({ name: 'an attachment to be saved', tasksMax: SAVING_MAX })
  saving.set(key, queue)
  try {
    return await queue.run(() => save(files, attachment, write))
  } finally {
    if (queue.isIdle) saving.delete(key)
  }
}

async function save(files: string, { owner, bytes, extension, pool, check }: NewAttachment, write: (path: string) => Promise<void>) {
  const path = attachmentPath(owner, bytes, extension)
  const at = join(attachmentsOf(files, owner), path.slice(path.lastIndexOf('/') + 1))
  const now = new Date()
  // A file that is sent again is as new as a first one.
  const isKept = await utimes(at, now, now).then(
    () => true,
    () => false,
  )
  if (isKept) return path
  const added = counted(bytes.length)
  if (check) {
    const own = await keptIn(attachmentsOf(files, owner))
    check({ own: own + added, pool: pool === undefined ? 0 : (await keptInPool(files, pool)) + added })
  }
  await write(path)
  if (pool !== undefined) {
    await mkdir(poolFolder(files, pool), { recursive: true, mode: 0o700 })
    await writeFile(join(poolFolder(files, pool), ownerFolder(owner)), '', { mode: 0o600 })
  }
  return path
}

/** Moves a received file to the place of an attachment. */
export async function keepReceived(
  files: string,
  owner: string,
  { path, file }: { readonly path: string; readonly file: string },
): Promise<void> {
  const folder = attachmentsOf(files, owner)
  await mkdir(folder, { recursive: true, mode: 0o700 })
  const to = join(folder, path.slice(path.lastIndexOf('/') + 1))
  await rename(file, to).catch(async (error: NodeJS.ErrnoException) => {
    // An operator may lead the folder of an agent to another file system.
    if (error.code !== 'EXDEV') throw error
    await copyFile(file, `${to}.part`)
    await rename(`${to}.part`, to)
  })
}

const counted = (bytes: number): number => Math.max(bytes, COUNTED_BYTES_MIN)

/** Resolves to the bytes of all files in a folder of an owner, as they count. */
export async function keptIn(folder: string): Promise<number> {
  const names = await readdir(folder).catch(() => [])
  let total = 0
  for (const name of names) total += counted((await lstat(join(folder, name)).catch(() => undefined))?.size ?? 0)
  return total
}

async function keptInPool(files: string, pool: string): Promise<number> {
  let total = 0
  for (const owner of await readdir(poolFolder(files, pool)).catch(() => [])) total += await keptIn(join(files, ATTACHMENTS, owner))
  return total
}
