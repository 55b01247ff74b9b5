/** Writes a backup of a data directory, while a daemon works on it or without one, and reads it back. See docs/guides/backup.md. */
import { createHash } from 'node:crypto'
import { closeSync, existsSync, fstatSync, openSync, readSync } from 'node:fs'
import { join, relative, resolve, sep } from 'node:path'
import { type ConfigSource, parseConfig, readConfigText, workspaceRoots } from '@sluice/config'
import { withoutPlainSecrets } from '@sluice/config/edit'
import { AppError, errorText, sha256Hex } from '@sluice/sdk'
import { secretKeyIds } from '@sluice/store/secret-box'
import { openSnapshot, type Snapshot } from '@sluice/store/snapshot'
import { createTarPacker, type TarHeader } from 'modern-tar'
import { seal } from './age.ts'
import { readArchive } from './archive.ts'
import { CONFIG_FILE, contentsOf, type Entry } from './contents.ts'
import { EntryTree } from './entry-tree.ts'
import { FORMAT, MANIFEST_FILE, MANIFEST_HASH_FILE, type Manifest } from './manifest.ts'
import { Pace } from './pace.ts'
import { PartFile } from './part-file.ts'

const CHUNK_BYTES = 256 * 1024

export interface BackupOptions extends ConfigSource {
  /** The absolute path of the backup, which must not exist. */
  readonly file: string
  /** The version of this release. */
  readonly version: string
  /** True: secrets that the configuration holds in plain text and the key of the encrypted ones are in the backup. */
  readonly withSecrets: boolean
  /** Encrypts the backup. */
  readonly passphrase?: string | undefined
  /** True: disk and processor rest most of the time, for a daemon. */
  readonly isPaced: boolean
  /** Folders that are not in the backup. */
  readonly except?: readonly string[]
  readonly onProgress?: (progress: Progress) => void
  /** Stops the backup; nothing is left of it. */
  readonly signal?: AbortSignal
}

export interface Progress {
  readonly phase: 'write' | 'verify'
  readonly bytes: number
  readonly bytesTotal: number
}

export interface Backup {
  readonly file: string
  readonly createdAtMs: number
  /** The size of the backup. */
  readonly bytes: number
  readonly files: number
  readonly isEncrypted: boolean
  readonly withSecrets: boolean
  /** The keys and sections of the configuration that are not in the backup. */
  readonly leftOut: readonly string[]
  readonly warnings: readonly string[]
}

/**
 * Resolves once the backup is complete, verified and on stable storage. A crash leaves no file of this name. Throws `conflict` if the
 * file exists, `not_found` without a database, `unavailable` for a damaged one or a full disk, `config_invalid` for a configuration
 * whose secrets cannot be identified, and `aborted`.
 */
export async function writeBackup(options: BackupOptions): Promise<Backup> {
  const { dataDir, file, passphrase, withSecrets, isPaced } = options
  const database = join(dataDir, 'sluice.db')
  if (!existsSync(database)) throw new AppError('not_found', `There is no database ${database}, so there is nothing to back up.`)
  const createdAtMs = Date.now()
  const config = await configText(options)
  const pace = isPaced ? new Pace() : undefined
  const part = await PartFile.create(file, pace).catch((error) => fail(file, error))
  let snapshot: Snapshot | undefined
  try {
    snapshot = openSnapshot(database)
    const writer = new ArchiveWriter(part, options)
    await writer.write(snapshot, config)
    snapshot.close()
    await part.finish()
    await verify(options, part, pace)
    part.name()
    const { files, warnings } = writer
    return {
      file,
      createdAtMs,
      bytes: part.bytes,
      files,
      isEncrypted: passphrase !== undefined,
      withSecrets,
      leftOut: config.removed,
      warnings: [...warnings, ...config.warnings],
    }
  } catch (error) {
    return fail(file, error)
  } finally {
    snapshot?.close()
    await part.discard()
  }
}

interface ConfigText {
  readonly text: string
  readonly removed: readonly string[]
  readonly warnings: readonly string[]
}

/** Returns the configuration for the backup. With secrets, a file that is not valid is taken as it is. */
async function configText(options: BackupOptions): Promise<ConfigText> {
  const { configFile, dataDir, withSecrets } = options
  const text = await readConfigText(configFile)
  const parsed = await parseConfig(options, text).catch((error: unknown) => {
    if (withSecrets) return undefined
    throw error
  })
  const outside = parsed ? workspaceRoots(parsed, dataDir).filter((root) => isOutside(dataDir, root) && existsSync(root)) : []
  const warnings = outside.map((root) => `the workspace ${root} is outside of the data directory and not in the backup`)
  const { text: kept, removed } = withSecrets ? { text, removed: [] } : await withoutPlainSecrets(options, text)
  return { text: kept, removed, warnings }
}

const isOutside = (folder: string, path: string): boolean =>
  relative(folder, path).split(sep)[0] === '..' || resolve(path) === resolve(folder)

/** Reads the backup back: decrypts it, and compares every file in it with its hash. */
async function verify({ onProgress, passphrase, signal }: BackupOptions, part: PartFile, pace: Pace | undefined): Promise<void> {
  const onRead = async (bytes: number): Promise<void> => {
    signal?.throwIfAborted()
    onProgress?.({ phase: 'verify', bytes, bytesTotal: part.bytes })
    await pace?.rest()
  }
  await readArchive({ file: part.path, passphrase: async () => passphrase, onRead })
}

function fail(file: string, error: unknown): never {
  if (error instanceof AppError) throw error
  if (error instanceof Error && error.name === 'AbortError')
    throw new AppError('aborted', 'The backup was stopped. Nothing is left of it.', { cause: error })
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  if (typeof code !== 'string') throw error
  const cure = code === 'ENOSPC' || code === 'EDQUOT' ? ' Make room, or write the backup to another disk.' : ''
  throw new AppError('unavailable', `${file} cannot be written: ${errorText(error)}.${cure}`, { cause: error })
}

/** Writes the entries of one backup, and its manifest at the end. */
class ArchiveWriter {
  readonly #options: BackupOptions
  readonly #part: PartFile
  readonly #tar = createTarPacker()
  readonly #hashes: Manifest['files'] = []
  readonly #links: NonNullable<Manifest['links']> = []
  readonly warnings: string[] = []
  /** The number of files without the manifest. */
  files = 0
  #bytes = 0
  #bytesTotal = 0

  constructor(part: PartFile, options: BackupOptions) {
    this.#options = options
    this.#part = part
  }

  async write(snapshot: Snapshot, config: ConfigText): Promise<void> {
    const { dataDir, withSecrets, except = [], passphrase } = this.#options
    const found = [...contentsOf({ dataDir, withSecrets, except: [...except, this.#part.path] })]
    const entries = this.#restorable(
      found,
      snapshot.files.map(({ name }) => name),
    )
    const sizes = [...snapshot.files, ...entries].map(({ bytes }) => bytes)
    this.#bytesTotal = sizes.reduce((sum, bytes) => sum + bytes, 0)
    const content: AsyncIterable<Uint8Array> = this.#tar.readable
    const written = this.#store(passphrase === undefined ? content : seal(content, passphrase))
    // The loop below fails with the same error, because a failed reader cancels the stream.
    written.catch(() => undefined)
    try {
      for (const { name, bytes, chunks } of snapshot.files) await this.#addFile({ name, size: bytes, mode: 0o600 }, chunks())
      snapshot.close()
      await this.#addText(CONFIG_FILE, config.text)
      for (const entry of entries) await this.#addEntry(entry)
      this.files = this.#hashes.length
      const manifest = JSON.stringify(this.#manifest(snapshot, config), null, 1)
      await this.#addText(MANIFEST_FILE, manifest)
      await this.#addText(MANIFEST_HASH_FILE, sha256Hex(manifest))
      this.#tar.controller.finalize()
    } catch (error) {
      this.#tar.controller.error(error)
      await written
      throw error
    }
    await written
  }

  /** Leaves out the entries that no restore accepts, with a warning. */
  #restorable(entries: readonly Entry[], database: readonly string[]): readonly Entry[] {
    const tree = new EntryTree()
    for (const name of [...database, CONFIG_FILE, MANIFEST_FILE, MANIFEST_HASH_FILE]) tree.add(name, 'file')
    const kept = entries.filter(({ path, type, target }) => {
      const problem = tree.add(path, type, target)
      if (problem !== undefined) this.warnings.push(`${path} is not in the backup: ${problem}`)
      return problem === undefined
    })
    const outside = new Set(tree.outsideLinks())
    for (const path of outside)
      this.warnings.push(`the link ${path} is not in the backup, because it leads out of the data directory, to ${tree.links.get(path)}`)
    return kept.filter(({ path }) => !outside.has(path))
  }

  async #store(content: AsyncIterable<Uint8Array>): Promise<void> {
    for await (const chunk of content) {
      this.#options.signal?.throwIfAborted()
      await this.#part.write(chunk)
    }
  }

  #manifest({ schema }: Snapshot, { removed }: ConfigText): Manifest {
    const { version, withSecrets, dataDir } = this.#options
    return {
      format: FORMAT,
      version,
      created_at: new Date().toISOString(),
      schema,
      with_secrets: withSecrets,
      key_ids: [...secretKeyIds(dataDir)],
      left_out: [...removed],
      files: [...this.#hashes],
      links: [...this.#links],
    }
  }

  #addText(name: string, text: string): Promise<void> {
    const bytes = Buffer.from(text)
    return this.#addFile({ name, size: bytes.length, mode: 0o600 }, [bytes])
  }

  async #addEntry({ path, absolute, type, mode, mtime, target = '' }: Entry): Promise<void> {
    if (type === 'directory') return this.#addHeader({ name: `${path}/`, type, size: 0, mode, mtime })
    if (type === 'symlink') {
      this.#links.push({ path, target })
      return this.#addHeader({ name: path, type, size: 0, mtime, linkname: target })
    }
    try {
      const descriptor = openSync(absolute, 'r')
      try {
        const size = fstatSync(descriptor).size
        await this.#addFile({ name: path, size, mode, mtime }, this.#chunksOf(path, descriptor, size))
      } finally {
        closeSync(descriptor)
      }
    } catch (error) {
      // A file of the workspace may be deleted, or belong to another user.
      const code = error instanceof Error && 'code' in error ? error.code : undefined
      if (code !== 'ENOENT' && code !== 'EACCES' && code !== 'EPERM') throw error
      this.warnings.push(`${path} cannot be read and is not in the backup (${code})`)
    }
  }

  async #addHeader(header: TarHeader): Promise<void> {
    await this.#tar.controller.add(header).close()
  }

  async #addFile(header: TarHeader, chunks: Iterable<Uint8Array>): Promise<void> {
    const body = this.#tar.controller.add(header).getWriter()
    const hash = createHash('sha256')
    for (const chunk of chunks) {
      hash.update(chunk)
      await body.write(chunk)
      this.#bytes += chunk.length
      this.#options.onProgress?.({ phase: 'write', bytes: this.#bytes, bytesTotal: Math.max(this.#bytes, this.#bytesTotal) })
    }
    await body.close()
    this.#hashes.push({ path: header.name, bytes: header.size, sha256: hash.digest('hex') })
  }

  /** Yields exactly `size` bytes: the header of the archive has been written, even if the file becomes shorter. */
  *#chunksOf(path: string, descriptor: number, size: number): Iterable<Uint8Array> {
    for (let at = 0; at < size; ) {
      const chunk = Buffer.alloc(Math.min(CHUNK_BYTES, size - at))
      const read = readSync(descriptor, chunk, 0, chunk.length, at)
      if (read < chunk.length && this.warnings.at(-1)?.startsWith(path) !== true)
        this.warnings.push(`${path} became shorter while it was copied`)
      yield chunk
      at += chunk.length
    }
  }
}
