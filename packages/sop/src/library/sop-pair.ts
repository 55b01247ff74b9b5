/**
 * Reads and replaces `SOP.toml` and `SOP.md` together. A save renames `SOP.md` first. Until `SOP.toml` follows, its new text is in a
 * hidden file, whose name has the hash of the two texts that are in place meanwhile. A reader that finds these two texts, also after a
 * crash, takes the hidden file.
 */
import { chmod, chown, readdir, realpath, rename, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type InsideFile, readInside, syncFolder } from '@sluice/kit'
import { AppError } from '@sluice/sdk'
import { contentHash } from './agreements.ts'

/** The texts of `SOP.toml` and `SOP.md`. */
export interface SopTexts {
  readonly toml: string
  readonly md: string
}

/** Both files as they were read. */
export interface SopPair {
  readonly toml: InsideFile
  readonly md: InsideFile
}

/** The largest size of `SOP.toml` and of `SOP.md`. */
export const SOP_FILE_BYTES_MAX = 256 * 1024
/** Matches the hidden files of saves, and no hidden files of editors, such as `.SOP.md.swp`. */
const HIDDEN = /^\.SOP\.(?:toml|md)\.(?:[0-9a-f]{64}|[0-9a-f-]{36})$/

/** Returns null for a file that cannot be read. */
export const textOf = (file: InsideFile): string | null => ('text' in file ? file.text : null)

/** Returns a text as `readPair` would read it from a file. */
export function asFile(text: string): InsideFile {
  const bytes = Buffer.byteLength(text)
  return bytes > SOP_FILE_BYTES_MAX ? { problem: `this file has ${bytes} bytes; the limit is ${SOP_FILE_BYTES_MAX}` } : { text }
}

/** `root` is the real path outside of which no file is read. Never throws. */
export async function readPair(root: string, folder: string): Promise<SopPair> {
  const read = (name: string) => readInside(root, join(folder, name), SOP_FILE_BYTES_MAX)
  const [toml, md] = await Promise.all([read('SOP.toml'), read('SOP.md')])
  return { toml, md }
}

/** Also finishes a save that has replaced only `SOP.md`. For a folder that the agent cannot write. Never throws. */
export async function readSavedPair(root: string, folder: string): Promise<SopPair> {
  const { toml, md } = await readPair(root, folder)
  if (!('text' in md)) return { toml, md }
  const rest = hiddenToml(folder, textOf(toml), md.text)
  const saved = await readInside(root, rest, SOP_FILE_BYTES_MAX)
  if (!('text' in saved)) return { toml, md }
  // A reader that may not write takes the hidden file each time.
  await rename(rest, join(folder, 'SOP.toml')).catch(() => undefined)
  return { toml: saved, md }
}

/** Replaces both files in a folder that is there, and keeps their mode. Call it for one save after another, after `readSavedPair`. */
export async function savePair(folder: string, { toml, md }: SopTexts): Promise<void> {
  const present = await readPair(await realpath(folder), folder)
  const rest = hiddenToml(folder, textOf(present.toml), md)
  let isReplaced = false
  await removeHidden(folder)
  try {
    const freshMd = await writeBeside(folder, 'SOP.md', md)
    await rename(await writeBeside(folder, 'SOP.toml', toml), rest)
    syncFolder(folder)
    await rename(freshMd, join(folder, 'SOP.md'))
    isReplaced = true
    await rename(rest, join(folder, 'SOP.toml')).catch(unlessFinished)
    syncFolder(folder)
  } finally {
    if (!isReplaced) await removeHidden(folder).catch(() => undefined)
  }
}

/** A reader may have finished the save. */
function unlessFinished(error: NodeJS.ErrnoException): void {
  if (error.code !== 'ENOENT') throw error
}

async function removeHidden(folder: string): Promise<void> {
  for (const name of await readdir(folder)) if (HIDDEN.test(name)) await rm(join(folder, name), { force: true })
}

const hiddenToml = (folder: string, toml: string | null, md: string): string => join(folder, `.SOP.toml.${contentHash(toml, md)}`)

/** Writes a hidden file with the mode and, where the daemon may, the owner of the one that it will replace. */
async function writeBeside(folder: string, name: string, text: string): Promise<string> {
  const present = await stat(join(folder, name)).catch(() => undefined)
  if (present?.isDirectory()) throw new AppError('invalid_request', `${join(folder, name)} is a folder: remove it first`)
  const file = join(folder, `.${name}.${crypto.randomUUID()}`)
  await writeFile(file, text, { mode: 0o600, flush: true })
  if (!present?.isFile()) return file
  await chown(file, present.uid, present.gid).catch(() => undefined)
  await chmod(file, present.mode & 0o777)
  return file
}
