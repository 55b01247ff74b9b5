/** Saves attachments and results of tools, and counts what their owners keep. */
import { copyFile, lstat, mkdir, readdir, rename, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { SerialQueue } from '@sluice/kit'
import { ATTACHMENTS, attachmentPath, type NewAttachment, ownerFolder } from '@sluice/sdk'
import { attachmentsOf, ownersFolder, poolFolder, RESULTS } from './owned-places.ts'

/** A smaller file counts as this much, so that small files without end have an end. */
export const COUNTED_BYTES_MIN = 16 * 1024

const SAVING_MAX = 1000

/** The files that are being saved for each owner or pool: two at once would both find room for one. */
const saving = new Map<string, SerialQueue>()

/** Whose files they are, and how much of them is kept. */
type Keeper = Pick<NewAttachment, 'owner' | 'others' | 'pool' | 'check'>

/** Resolves to the path of the attachment. `write` writes it. Rejects as `check` does. */
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

async function save(
  files: string,
  { owner, others = [], bytes, extension, pool, check }: NewAttachment,
  write: (path: string) => Promise<void>,
) {
  const path = attachmentPath(owner, bytes, extension)
  const at = join(attachmentsOf(files, owner), path.slice(path.lastIndexOf('/') + 1))
  const now = new Date()
  // A file that is sent again is as new as a first one.
  const isKept = await utimes(at, now, now).then(
    () => true,
    () => false,
  )
  if (isKept) return path
  if (check) await checkRoom(files, { owner, others, pool, check }, counted(bytes.length))
  await write(path)
  await joinPool(files, owner, pool)
  return path
}

/** A result of a tool. `names` lead to it from the folder of all results. */
export interface NewResult extends Keeper {
  readonly names: readonly string[]
  readonly length: number
}

/** Writes a result, which counts for its owner as an attachment does. Rejects as `check` does. */
export const saveResult = (files: string, result: NewResult, write: () => Promise<void>): Promise<void> =>
  inTurn(files, result, async () => {
    const { owner, others = [], pool, check, names, length } = result
    const [folder = ''] = names
    if (check) {
      const replaced = (await lstat(join(files, RESULTS, ...names)).catch(() => undefined))?.size
      await checkRoom(files, { owner, others, pool, check }, counted(length) - (replaced === undefined ? 0 : counted(replaced)))
    }
    const conversations = ownersFolder(files, ownerFolder(owner))
    await mkdir(conversations, { recursive: true, mode: 0o700 })
    await writeFile(join(conversations, folder), '', { mode: 0o600 })
    await joinPool(files, owner, pool)
    await write()
  })

async function checkRoom(files: string, { owner, others = [], pool, check }: Keeper, added: number): Promise<void> {
  let own = 0
  for (const one of [owner, ...others]) own += await keptBy(files, ownerFolder(one))
  check?.({ own: own + added, pool: pool === undefined ? 0 : (await keptInPool(files, pool)) + added })
}

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

const counted = (bytes: number): number => Math.max(bytes, COUNTED_BYTES_MIN)

/** Resolves to the bytes of the attachments and results of an owner, as they count. `owner` is the name of its folder. */
export async function keptBy(files: string, owner: string): Promise<number> {
  let total = await keptIn(join(files, ATTACHMENTS, owner))
  for (const conversation of await readdir(ownersFolder(files, owner)).catch(() => []))
    total += await keptIn(join(files, RESULTS, conversation))
  return total
}

async function keptIn(folder: string): Promise<number> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true }).catch(() => [])
  let total = 0
  for (const entry of entries)
    if (!entry.isDirectory()) total += counted((await lstat(join(entry.parentPath, entry.name)).catch(() => undefined))?.size ?? 0)
  return total
}

async function keptInPool(files: string, pool: string): Promise<number> {
  let total = 0
  for (const owner of await readdir(poolFolder(files, pool)).catch(() => [])) total += await keptBy(files, owner)
  return total
}
