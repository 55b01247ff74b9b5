/** Reads an archive from its beginning to its end, and checks every file in it against the manifest. */
import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { open } from 'node:fs/promises'
import { ByteBuffer } from '@sluice/kit'
import { AppError, errorText, sha256Hex } from '@sluice/sdk'
import { createTarDecoder, type ParsedTarEntry, type TarHeader } from 'modern-tar'
import { isSealed, SEALED_HEAD_BYTES, unseal } from './age.ts'
import { EntryTree, type EntryType } from './entry-tree.ts'
import { MANIFEST_BYTES_MAX, MANIFEST_FILE, MANIFEST_HASH_FILE, type Manifest, parseManifest } from './manifest.ts'

const READ_BYTES = 256 * 1024

/** One entry of an archive. */
export interface ArchiveEntry {
  /** A relative path without `..`, with `/` between names. */
  readonly path: string
  readonly type: EntryType
  readonly header: TarHeader
  /** The content of a file. */
  readonly chunks: AsyncIterable<Uint8Array>
}

export interface ReadOptions {
  readonly file: string
  /** Asked for if the archive is encrypted. */
  readonly passphrase: () => Promise<string | undefined>
  /** Called with the number of bytes of the archive that have been read. The reader waits until it resolves. */
  readonly onRead?: (bytes: number) => void | Promise<void>
  /** Takes an entry. Chunks that it does not read are read afterwards. */
  readonly take?: (entry: ArchiveEntry) => Promise<void>
  /** True: links that lead out of the data directory are left out. Otherwise an archive that has one is refused. */
  readonly skipLinks?: boolean
}

export interface ReadArchive {
  readonly manifest: Manifest
  /** The links that stay in the data directory: path and target. */
  readonly links: readonly (readonly [path: string, target: string])[]
  /** The links that lead out of it, and are left out. */
  readonly skipped: readonly string[]
}

/**
 * Resolves once all content matches the manifest. Throws `invalid_request` for a file that is not a backup, is cut off or was changed,
 * for one with an entry that would be outside of the data directory, and for a wrong passphrase; `not_found` without a file.
 */
export async function readArchive(options: ReadOptions): Promise<ReadArchive> {
  const { file, take, skipLinks = false } = options
  const tree = new EntryTree()
  const found = new Map<string, { readonly bytes: number; readonly sha256: string }>()
  let manifestText: string | undefined
  let hash: string | undefined
  try {
    const tar = ReadableStream.from(await openContent(options)).pipeThrough(createTarDecoder({ strict: true }))
    for await (const entry of tar) {
      if (hash !== undefined) throw invalid('it has content after its end')
      const { name, type = 'file' } = entry.header
      const path = name.replace(/\/$/, '')
      if (type !== 'file' && type !== 'directory' && type !== 'symlink') throw invalid(`it has a ${type}, ${path}`)
      const problem = tree.add(path, type, entry.header.linkname)
      if (problem !== undefined) throw invalid(problem)
      if (path === MANIFEST_HASH_FILE) hash = await readText(entry)
      else if (path === MANIFEST_FILE) manifestText = await readText(entry)
      if (path === MANIFEST_HASH_FILE || path === MANIFEST_FILE) continue
      const { chunks, digest } = hashed(entry)
      await take?.({ path, type, header: entry.header, chunks })
      for await (const _ of chunks);
      if (type === 'file') found.set(path, digest())
    }
  } catch (error) {
    throw error instanceof AppError || !isTarError(error) ? error : invalid(errorText(error).replace(/\.$/, ''), error)
  }
  if (manifestText === undefined || hash === undefined) throw invalid('it is cut off, or it is not a backup of Sluice')
  if (hash !== sha256Hex(manifestText)) throw invalid('its manifest is damaged')
  const manifest = parseManifest(manifestText)
  compare(manifest, found)
  const outside = new Set(tree.outsideLinks())
  const [first] = outside
  if (first !== undefined && !skipLinks)
    throw invalid(
      `it has ${outside.size} ${outside.size === 1 ? 'link' : 'links'} out of the data directory, such as ${first} to ${tree.links.get(first)}; to leave them out, add --skip-links`,
    )
  return { manifest, links: [...tree.links].filter(([path]) => !outside.has(path)), skipped: [...outside] }

  function invalid(why: string, cause?: unknown): AppError {
    return new AppError('invalid_request', `${file} cannot be used: ${why}.`, { cause })
  }
  function compare({ files, links }: Manifest, read: typeof found): void {
    if (files.length !== read.size) throw invalid(`it has ${read.size} files, but its manifest names ${files.length}`)
    for (const { path, bytes, sha256 } of files) {
      const one = read.get(path)
      if (!one) throw invalid(`${path} is missing`)
      if (one.bytes !== bytes || one.sha256 !== sha256) throw invalid(`${path} is damaged`)
    }
    // A backup of an earlier release does not list its links.
    if (links && links.length !== tree.links.size) throw invalid(`it has ${tree.links.size} links, but its manifest names ${links.length}`)
    for (const { path, target } of links ?? []) if (tree.links.get(path) !== target) throw invalid(`the link ${path} is damaged`)
  }
}

/** Errors of the system have a code; errors of the tar reader do not. */
const isTarError = (error: unknown): boolean => error instanceof Error && !('code' in error)

async function openContent({ file, passphrase, onRead }: ReadOptions): Promise<AsyncIterable<Uint8Array>> {
  const sealed = isSealed(await readHead(file))
  const source = readFrom(file, onRead)
  if (!sealed) return source
  const given = await passphrase()
  if (given === undefined) throw new AppError('invalid_request', `${file} is encrypted: its passphrase is needed.`)
  return unseal(source, given)
}

async function readHead(file: string): Promise<Uint8Array> {
  const handle = await open(file).catch((cause: NodeJS.ErrnoException) => {
    throw cause.code === 'ENOENT' ? new AppError('not_found', `There is no file ${file}.`, { cause }) : cause
  })
  try {
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(SEALED_HEAD_BYTES), 0, SEALED_HEAD_BYTES, 0)
    return buffer.subarray(0, bytesRead)
  } finally {
    await handle.close()
  }
}

async function* readFrom(file: string, onRead: ReadOptions['onRead']): AsyncIterable<Uint8Array> {
  let bytes = 0
  for await (const chunk of createReadStream(file, { highWaterMark: READ_BYTES })) {
    yield chunk
    bytes += chunk.length
    await onRead?.(bytes)
  }
}

function hashed({ body }: ParsedTarEntry) {
  const hash = createHash('sha256')
  const reader = body.getReader()
  let bytes = 0
  async function* read(): AsyncGenerator<Uint8Array> {
    for (let next = await reader.read(); !next.done; next = await reader.read()) {
      hash.update(next.value)
      bytes += next.value.length
      yield next.value
    }
  }
  const generator = read()
  // A caller may stop in the middle; the rest is read by the next loop.
  const chunks: AsyncIterable<Uint8Array> = { [Symbol.asyncIterator]: () => ({ next: () => generator.next() }) }
  return { chunks, digest: () => ({ bytes, sha256: hash.digest('hex') }) }
}

async function readText({ body, header }: ParsedTarEntry): Promise<string> {
  if (header.size > MANIFEST_BYTES_MAX) throw new AppError('invalid_request', 'The manifest of the backup is too large.')
  const text = new ByteBuffer()
  for await (const part of body) text.append(part)
  return text.bytes().toString('utf8')
}
