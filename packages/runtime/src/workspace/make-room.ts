/** Counts what owners keep, and removes their oldest results when a further file has no room (docs/limits.md#shares). */
import { lstat, readdir, rm } from 'node:fs/promises'
import { join, sep } from 'node:path'
import { ATTACHMENTS, type FileShare, ownerFolder } from '@sluice/sdk'
import { ownersFolder, poolFolder, RESULTS } from './owned-places.ts'

/** A smaller file counts as this much, so that small files without end have an end. */
export const COUNTED_BYTES_MIN = 16 * 1024
/** The files whose sizes are asked for at once. */
const ASKED_AT_ONCE = 256

/** An attachment is named after its bytes, so its size never changes. */
const IS_ATTACHMENT = /[/\\][0-9a-f]{64}\.[a-z0-9]{1,16}$/
const KNOWN_MAX = 50_000
/** The sizes of attachments by path, as they count: otherwise each of many files would ask for the sizes of all others. */
const attachmentBytes = new Map<string, number>()

export const counted = (bytes: number): number => Math.max(bytes, COUNTED_BYTES_MIN)

/** A kept file. */
interface KeptFile {
  readonly path: string
  /** As they count. */
  readonly bytes: number
  readonly modifiedAtMs: number
}

/** A file that is about to be written. */
interface NewFile {
  /** As they count. */
  readonly bytes: number
  /** The path of the file that it replaces, which no longer counts. */
  readonly replaces?: string
}

/**
 * Removes the oldest results of the owner, or of its pool, until the file has room. Rejects as `limit.check` does, and removes nothing then.
 * Counts nothing without a limit.
 */
export async function makeRoom(
  files: string,
  { owner, others = [], pool, limit }: FileShare & { readonly owner: string },
  { bytes, replaces }: NewFile,
): Promise<void> {
  if (!limit) return
  const { max } = limit
  const own = new Set([owner, ...others].map(ownerFolder))
  const pooled = new Set<string>()
  if (pool !== undefined && max.pool < Number.POSITIVE_INFINITY)
    for (const one of [ownerFolder(owner), ...(await readdir(poolFolder(files, pool)).catch(() => []))]) pooled.add(one)
  const kept = { own: bytes, pool: pooled.size > 0 ? bytes : 0 }
  const count = (one: string, change: number): void => {
    if (own.has(one)) kept.own += change
    if (pooled.has(one)) kept.pool += change
  }
  const owners = new Set([...own, ...pooled])
  for (const one of owners) count(one, await attachedBy(files, one))
  limit.check(kept)
  const results: (KeptFile & { readonly of: string })[] = []
  for (const of of owners)
    for (const result of await resultsBy(files, of))
      if (result.path !== replaces) {
        results.push({ ...result, of })
        count(of, result.bytes)
      }
  for (const { of, path, bytes: freed } of results.toSorted((a, b) => a.modifiedAtMs - b.modifiedAtMs)) {
    const isInTheWay = (own.has(of) && kept.own > max.own) || (pooled.has(of) && kept.pool > max.pool)
    if (!isInTheWay) continue
    await rm(path, { force: true })
    count(of, -freed)
  }
}

/** Resolves to the bytes of the attachments of an owner, as they count. `owner` is the name of its folder. */
export async function attachedBy(files: string, owner: string): Promise<number> {
  const folder = join(files, ATTACHMENTS, owner)
  const unknown: string[] = []
  let sum = 0
  for (const name of await readdir(folder).catch(() => [])) {
    const path = folder + sep + name
    const bytes = attachmentBytes.get(path)
    if (bytes === undefined) unknown.push(path)
    else sum += bytes
  }
  for (const { path, bytes } of await sizesOf(unknown)) {
    sum += bytes
    if (!IS_ATTACHMENT.test(path)) continue
    if (attachmentBytes.size >= KNOWN_MAX) attachmentBytes.clear()
    attachmentBytes.set(path, bytes)
  }
  return sum
}

/** Lists the results of an owner. `owner` is the name of its folder. */
export async function resultsBy(files: string, owner: string): Promise<KeptFile[]> {
  const found: KeptFile[] = []
  for (const conversation of await readdir(ownersFolder(files, owner)).catch(() => [])) {
    const entries = await readdir(join(files, RESULTS, conversation), { recursive: true, withFileTypes: true }).catch(() => [])
    const paths = entries.filter((entry) => !entry.isDirectory()).map(({ parentPath, name }) => join(parentPath, name))
    for (const file of await sizesOf(paths)) found.push(file)
  }
  return found
}

async function sizesOf(paths: readonly string[]): Promise<KeptFile[]> {
  const found: KeptFile[] = []
  for (let at = 0; at < paths.length; at += ASKED_AT_ONCE)
    for (const file of await Promise.all(paths.slice(at, at + ASKED_AT_ONCE).map(keptFile))) if (file) found.push(file)
  return found
}

const keptFile = (path: string): Promise<KeptFile | undefined> =>
  lstat(path).then(
    ({ size, mtimeMs }) => ({ path, bytes: counted(size), modifiedAtMs: mtimeMs }),
    () => undefined,
  )
