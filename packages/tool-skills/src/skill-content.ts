/** The whole content of a skill's folder, in memory: a person accepts exactly these bytes. */
import { createHash } from 'node:crypto'
import { constants } from 'node:fs'
import { mkdir, open, readdir, rename, rm, writeFile } from 'node:fs/promises'
import { dirname, join, sep } from 'node:path'
import { AppError } from '@sluice/sdk'

export const FILES_MAX = 500
export const CONTENT_BYTES_MAX = 32 * 1024 * 1024
const DEPTH_MAX = 8
/** Folders that tools make next to a skill and that are not part of it. */
const IGNORED = new Set(['.git', 'node_modules', '__pycache__', '.DS_Store'])

export interface SkillContentFile {
  /** Relative to the folder, with `/` as the separator. */
  readonly path: string
  readonly bytes: Uint8Array
  readonly isExecutable: boolean
}

export interface SkillContent {
  /** Sorted by path. */
  readonly files: readonly SkillContentFile[]
  /** SHA-256 of paths, bytes and execute permissions, in hexadecimal. */
  readonly hash: string
}

/** Throws `invalid_request` for a link or another special file, and `too_large` beyond the limits above. */
export async function readContent(folder: string): Promise<SkillContent> {
  const files: SkillContentFile[] = []
  let bytesLeft = CONTENT_BYTES_MAX
  const visit = async (inner: string, depth: number): Promise<void> => {
    if (depth > DEPTH_MAX) throw new AppError('too_large', `${inner} is more than ${DEPTH_MAX} folders deep`)
    const entries = (await readdir(join(folder, inner), { withFileTypes: true })).filter(({ name }) => !IGNORED.has(name))
    for (const entry of entries) {
      const path = join(inner, entry.name)
      if (entry.isDirectory()) await visit(path, depth + 1)
      else if (!entry.isFile()) throw new AppError('invalid_request', `${join(folder, path)} is a link or a special file`)
      else {
        if (files.length === FILES_MAX) throw new AppError('too_large', `${folder} has more than ${FILES_MAX} files`)
        const file = await readFileOf(join(folder, path), bytesLeft)
        bytesLeft -= file.bytes.length
        files.push({ path: path.split(sep).join('/'), ...file })
      }
    }
  }
  await visit('', 0)
  files.sort((a, b) => (a.path < b.path ? -1 : 1))
  const hash = createHash('sha256')
  for (const { path, bytes, isExecutable } of files) {
    hash.update(JSON.stringify([path, bytes.length, isExecutable])).update(bytes)
  }
  return { files, hash: hash.digest('hex') }
}

async function readFileOf(path: string, bytesMax: number): Promise<Pick<SkillContentFile, 'bytes' | 'isExecutable'>> {
  await using handle = await open(path, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW)
  const stats = await handle.stat()
  if (!stats.isFile()) throw new AppError('invalid_request', `${path} is a link or a special file`)
  if (stats.size > bytesMax) throw new AppError('too_large', `the skill with ${path} has more than ${CONTENT_BYTES_MAX} bytes`)
  const buffer = Buffer.alloc(stats.size)
  const { bytesRead } = await handle.read(buffer, 0, stats.size, 0)
  return { bytes: buffer.subarray(0, bytesRead), isExecutable: (stats.mode & 0o100) !== 0 }
}

/** The beginnings of the names of a folder that is being written, and of the one that it replaces. */
const [NEW, OLD] = ['.new-', '.old-']

/** Writes the content as the folder `name` of `parent`; a folder of this name is replaced as a whole. */
export async function writeContent(parent: string, name: string, { files }: SkillContent): Promise<string> {
  const target = join(parent, name)
  const temporary = join(parent, NEW + name)
  const old = join(parent, OLD + name)
  await mkdir(parent, { recursive: true, mode: 0o700 })
  await Promise.all([temporary, old].map((path) => rm(path, { recursive: true, force: true })))
  for (const { path, bytes, isExecutable } of files) {
    await mkdir(dirname(join(temporary, path)), { recursive: true, mode: 0o700 })
    await writeFile(join(temporary, path), bytes, { mode: isExecutable ? 0o700 : 0o600, flush: true })
  }
  await rename(target, old).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT') throw error
  })
  await rename(temporary, target)
  await rm(old, { recursive: true, force: true })
  return target
}

/**
 * Finishes or undoes what a crash interrupted in `writeContent`, so that a replaced folder is never missing. Call it while nothing else
 * writes in `parent`.
 */
export async function finishWriting(parent: string): Promise<void> {
  const entries = await readdir(parent).catch((): string[] => [])
  const replaced = entries.flatMap((entry) => (entry.startsWith(OLD) ? [entry.slice(OLD.length)] : []))
  for (const name of replaced.filter((one) => !entries.includes(one))) {
    // The new folder was complete before the old one was moved away.
    const from = entries.includes(NEW + name) ? NEW : OLD
    await rename(join(parent, from + name), join(parent, name))
  }
  const left = entries.filter((entry) => entry.startsWith(NEW) || entry.startsWith(OLD))
  await Promise.all(left.map((entry) => rm(join(parent, entry), { recursive: true, force: true })))
}
