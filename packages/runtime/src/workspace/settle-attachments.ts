/**
 * Leads `attachments` of a workspace to the folder of the data directory that has the attachments. They lie there, and not in the
 * workspace, so that every sandbox hides them: a command sees the whole workspace, and then only the attachments that it is shown.
 */
import { randomBytes } from 'node:crypto'
import { cp, lstat, mkdir, readdir, readFile, readlink, realpath, rename, rm, rmdir, symlink, unlink } from 'node:fs/promises'
import { join, relative, resolve } from 'node:path'
import { replaceDurably } from '@sluice/kit'
import { ATTACHMENTS } from '@sluice/sdk'
import { FORMER } from './owned-places.ts'

/** Records which workspaces are settled. */
const RECORD = 'settled.json'

interface Settled {
  /** The workspaces without links. */
  readonly workspaces: readonly string[]
  /** True once the former attachments belong to the senders whose conversations name them. */
  readonly assigned: boolean
}

/**
 * Moves the attachments that an earlier release kept in the workspace to `former`, and leaves a link in their place. Later it restores the
 * link: a file that a command has put there is renamed, and never taken for attachments. Does nothing while the workspace does not exist.
 */
export function settleAttachments(root: string, files: string): Promise<void> {
  const running = settling.get(root) ?? settle(root, files).finally(() => settling.delete(root))
  settling.set(root, running)
  return running
}

/** Two commands that begin together settle their workspace once. */
const settling = new Map<string, Promise<void>>()

async function settle(root: string, files: string): Promise<void> {
  const real = await realpath(root).catch(() => undefined)
  if (real === undefined) return
  const at = join(real, ATTACHMENTS)
  const kept = await keptFolder(files)
  const target = relative(real, kept)
  const settled = await readSettled(files)
  const isSettled = settled?.workspaces.includes(real) === true
  const found = await lstat(at).catch(absent)
  const isLinked = found?.isSymbolicLink() === true && resolve(real, await readlink(at).catch(() => '')) === kept
  if (isSettled && isLinked) return
  const isMoved = found?.isDirectory() === true && !isSettled
  if (isMoved) await moveEntries(at, join(files, FORMER))
  else if (found?.isSymbolicLink() && !isLinked) await unlink(at).catch(absent)
  if (!isLinked) await putLink(at, target, kept)
  if (isSettled) return
  const workspaces = [...(settled?.workspaces ?? []), real]
  writeSettled(files, { workspaces, assigned: (settled?.assigned ?? true) && !isMoved })
}

/** Tells whether former attachments wait for their owners. */
export const areUnassigned = async (files: string): Promise<boolean> => (await readSettled(files))?.assigned === false

export async function markAssigned(files: string): Promise<void> {
  const settled = await readSettled(files)
  if (settled) writeSettled(files, { ...settled, assigned: true })
}

async function readSettled(files: string): Promise<Settled | undefined> {
  const text = await readFile(join(files, RECORD), 'utf8').catch(absent)
  return text === undefined ? undefined : (JSON.parse(text) as Settled)
}

const writeSettled = (files: string, settled: Settled): void => replaceDurably(join(files, RECORD), `${JSON.stringify(settled)}\n`)

/** Returns the folder of all attachments without links: an operator may lead `files` to a folder that several nodes mount. */
async function keptFolder(files: string): Promise<string> {
  const kept = join(files, ATTACHMENTS)
  await mkdir(kept, { recursive: true, mode: 0o700 })
  return realpath(kept)
}

/** Moves the entries of a folder into another one, in which an entry of the same name stays as it is, and removes the folder once it is empty. */
async function moveEntries(from: string, to: string): Promise<void> {
  await mkdir(to, { recursive: true, mode: 0o700 })
  for (const name of await readdir(from)) {
    if (await lstat(join(to, name)).catch(absent)) continue
    await rename(join(from, name), join(to, name)).catch(async (error: NodeJS.ErrnoException) => {
      // Another process moves them too, or the workspace is on a file system of its own.
      if (error.code === 'ENOENT') return
      if (error.code !== 'EXDEV') throw error
      await cp(join(from, name), join(to, name), { recursive: true, preserveTimestamps: true, verbatimSymlinks: true })
      await rm(join(from, name), { recursive: true, force: true })
    })
  }
  await rmdir(from).catch(() => undefined)
}

/** Makes the link. An entry of this name is renamed first. */
async function putLink(at: string, target: string, kept: string): Promise<void> {
  await rename(at, `${at}.before-${randomBytes(4).toString('hex')}`).catch(absent)
  // Windows lets every user make junctions, which have an absolute target.
  const made = process.platform === 'win32' ? symlink(kept, at, 'junction') : symlink(target, at)
  await made.catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'EEXIST') throw error
  })
}

export function absent(error: NodeJS.ErrnoException): undefined {
  if (error.code !== 'ENOENT') throw error
}
