/** Saves attachments, and counts what their owners keep. */
import { lstat, mkdir, readdir, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { ATTACHMENTS, attachmentPath, type NewAttachment, ownerFolder } from '@sluice/sdk'
import { attachmentsOf, poolFolder } from './owned-places.ts'

/** A smaller file counts as this much, so that small files without end have an end. */
export const COUNTED_BYTES_MIN = 16 * 1024

/** The last attachment that is being saved in each folder: two at once would both find room for one. */
const saving = new Map<string, Promise<unknown>>()

/** Resolves to the path of the attachment. `write` writes it. Rejects as `check` does. */
export function attach(files: string, attachment: NewAttachment, write: (path: string) => Promise<void>): Promise<string> {
  const saved = (saving.get(files) ?? Promise.resolve()).catch(() => undefined).then(() => save(files, attachment, write))
  saving.set(files, saved)
  const forget = () => {
    if (saving.get(files) === saved) saving.delete(files)
  }
  saved.then(forget, forget)
  return saved
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

const counted = (bytes: number): number => Math.max(bytes, COUNTED_BYTES_MIN)

async function keptIn(folder: string): Promise<number> {
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
