/** Reads an archive from its beginning to its end, and checks every file in it against the manifest. */
import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { open } from 'node:fs/promises'
import { ByteBuffer } from '@sluice/kit'
import { AppError, errorText, sha256Hex } from '@sluice/sdk'
import { createTarDecoder, type ParsedTarEntry, type TarHeader } from 'modern-tar'
import { isSealed, SEALED_HEAD_BYTES, unseal } from './age.ts'
import { MANIFEST_BYTES_MAX, MANIFEST_FILE, MANIFEST_HASH_FILE, type Manifest, parseManifest } from './manifest.ts'

const READ_BYTES = 256 * 1024

/** One entry of an archive. */
export interface ArchiveEntry {
  /** A relative path without `..`, with `/` between names. */
  readonly path: string
  readonly type: 'file' | 'directory' | 'symlink'
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
}

/**
 * Resolves to the manifest once all content matches it. Throws `invalid_request` for a file that is not a backup, is cut off or was
 * changed, and for a wrong passphrase; `not_found` if there is no file.
 */
export async function readArchive(options: ReadOptions): Promise<Manifest> {
  const { file, take } = options
  const found = new Map<string, { readonly bytes: number; readonly sha256: string }>()
  let manifestText: string | undefined
  let hash: string | undefined
  try {
    const tar = ReadableStream.from(await openContent(options)).pipeThrough(createTarDecoder({ strict: true }))
    for await (const entry of tar) {
      if (hash !== undefined) throw invalid('it has content after its end')
      const { name, type = 'file' } = entry.header
      const path = name.replace(/\/$/, '')
      if (path === MANIFEST_HASH_FILE) hash = await readText(entry)
      else if (path === MANIFEST_FILE) manifestText = await readText(entry)
      if (path === MANIFEST_HASH_FILE || path === MANIFEST_FILE) continue
      requireSafe(path)
      if (type !== 'file' && type !== 'directory' && type !== 'symlink') throw invalid(`it has a ${type}, ${path}`)
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
  return manifest

  function invalid(why: string, cause?: unknown): AppError {
    return new AppError('invalid_request', `${file} cannot be used: ${why}.`, { cause })
  }
  function compare({ files }: Manifest, read: typeof found): void {
    if (files.length !== read.size) throw invalid(`it has ${read.size} files, but its manifest names ${files.length}`)
    for (const { path, bytes, sha256 } of files) {
      const one = read.get(path)
      if (!one) throw invalid(`${path} is missing`)
      if (one.bytes !== bytes || one.sha256 !== sha256) throw invalid(`${path} is damaged`)
    }
  }
  /** A path from outside must not lead out of the folder into which it is restored. */
  function requireSafe(path: string): void {
    const isSafe =
      path !== '' && !path.includes('\0') && !path.includes('\\') && path.split('/').every((name) => !['', '.', '..'].includes(name))
    if (!isSafe) throw invalid(`it has an entry with the path ${JSON.stringify(path)}`)
  }
}

/** Errors of the system have a code; those of the tar reader do not. */
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
