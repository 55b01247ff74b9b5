/** Saves attachments and results of tools in the order of their owners. */
import { copyFile, mkdir, rename, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { SerialQueue } from '@sluice/kit'
import { attachmentPath, type FileShare, type NewAttachment, ownerFolder } from '@sluice/sdk'
import { counted, makeRoom } from './make-room.ts'
import { attachmentsOf, ownersFolder, poolFolder, RESULTS } from './owned-places.ts'

const SAVING_MAX = 1000

/** The files that are being saved for each owner or pool: two at once would both find room for one. */
const saving = new Map<string, SerialQueue>()

/** Whose files they are, and the share that they count for. */
interface Keeper extends FileShare {
  readonly owner: string
}

/** Resolves to the path of the attachment. `write` writes it. Rejects as `limit.check` does. */
export const attach = (files: string, attachment: NewAttachment, write: (path: string) => Promise<void>): Promise<string> =>
  inTurn(files, attachment, () => save(files, attachment, write))

/** Runs `run` while no other file of this owner or pool is being saved. */
async function inTurn<Value>(files: string, { owner, others = [], pool }: Keeper, run: () => Promise<Value>): Promise<Value> {
  const [first = owner] = [owner, ...others].toSorted()
  const key = pool === undefined ? attachmentsOf(files, first) : poolFolder(files, pool)
  const queue = saving.get(key) ?? new SerialQueue({ name: 'a file to be saved', tasksMax: SAVING_MAX })
  saving.set(key, queue)
  try {
    return await queue.run(run)
  } finally {
    if (queue.isIdle) saving.delete(key)
  }
}

async function save(files: string, attachment: NewAttachment, write: (path: string) => Promise<void>) {
  const { owner, bytes, extension, pool } = attachment
  const path = attachmentPath(owner, bytes, extension)
  const at = join(attachmentsOf(files, owner), path.slice(path.lastIndexOf('/') + 1))
  const now = new Date()
  // A file that is sent again is as new as a first one.
  const isKept = await utimes(at, now, now).then(
    () => true,
    () => false,
  )
  if (isKept) return path
  await makeRoom(files, attachment, { bytes: counted(bytes.length) })
  await write(path)
  await joinPool(files, owner, pool)
  return path
}

/** A result of a tool. `names` lead to it from the folder of all results. */
export interface NewResult extends Keeper {
  readonly names: readonly string[]
  readonly length: number
}

/** Writes a result, which counts for its owner as an attachment does. Rejects as `limit.check` does. */
export const saveResult = (files: string, result: NewResult, write: () => Promise<void>): Promise<void> =>
  inTurn(files, result, async () => {
    const { owner, pool, names, length } = result
    const [folder = ''] = names
    await makeRoom(files, result, { bytes: counted(length), replaces: join(files, RESULTS, ...names) })
    const conversations = ownersFolder(files, ownerFolder(owner))
    await mkdir(conversations, { recursive: true, mode: 0o700 })
    await writeFile(join(conversations, folder), '', { mode: 0o600 })
    await joinPool(files, owner, pool)
    await write()
  })

async function joinPool(files: string, owner: string, pool: string | undefined): Promise<void> {
  if (pool === undefined) return
  await mkdir(poolFolder(files, pool), { recursive: true, mode: 0o700 })
  await writeFile(join(poolFolder(files, pool), ownerFolder(owner)), '', { mode: 0o600 })
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
