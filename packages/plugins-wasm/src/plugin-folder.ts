/** The folder of installed plugins. It has one folder per plugin, which appears and disappears by an atomic rename. */
import { randomUUID } from 'node:crypto'
import { lstat, mkdir, open, readdir, rename, rm, stat } from 'node:fs/promises'
import { homedir } from 'node:os'
import { join, resolve } from 'node:path'
import { parsedOrUndefined, textAt } from '@sluice/kit/foreign-json'
import { AppError, type Clock } from '@sluice/sdk'
import type { PluginsConfig } from './config.ts'
import { isPluginName, MANIFEST_FILE } from './manifest.ts'
import { type CheckedPlugin, readPlugin, readRegularFile } from './plugin-files.ts'
import type { Origin } from './trust.ts'

/** The maximum number of plugins that are installed or loaded. */
export const PLUGINS_MAX = 64
/** The folder in which plugins are assembled and deleted. It is not a valid name of a plugin. */
const STAGING = '.staging'
const SOURCE_FILE = 'source.json'
const SOURCE_BYTES_MAX = 16_384
/** The age at which the files of an interrupted command are deleted. */
const STALE_MS = 3_600_000
const POLL_MS = 2000

export interface Installed extends CheckedPlugin {
  /** The URL, archive or folder from which it was installed. Empty for a plugin that was copied by hand. */
  readonly source: string
}

/** The files of a new plugin and their source. */
export interface Placement extends CheckedPlugin {
  readonly manifestBytes: Uint8Array
  readonly source: string
}

export class PluginFolder {
  readonly path: string
  readonly #security: PluginsConfig['security']

  constructor(path: string, security: PluginsConfig['security']) {
    this.path = path
    this.#security = security
  }

  /** Resolves the configured `plugins_dir` relative to the data directory. */
  static of(dataDir: string, { plugins_dir, security }: PluginsConfig): PluginFolder {
    return new PluginFolder(resolve(dataDir, plugins_dir.replace(/^~(?=\/|$)/, homedir())), security)
  }

  /** Returns at most `PLUGINS_MAX` names, sorted. Does not check the plugins; `read` does. */
  async names(): Promise<readonly string[]> {
    const entries = await readdir(this.path, { withFileTypes: true }).catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return []
      throw error
    })
    const names = entries.filter((entry) => entry.isDirectory() && isPluginName(entry.name)).map(({ name }) => name)
    return names.sort().slice(0, PLUGINS_MAX)
  }

  /** Throws `not_found`, and like `readPlugin` for a plugin that is not valid. */
  async read(name: string): Promise<Installed> {
    const folder = await this.#folderOf(name)
    const source = await sourceOf(folder)
    const origin: Origin = /^https:/.test(source) ? 'url' : 'directory'
    const read = (file: string, bytesMax: number) => readRegularFile(join(folder, file), bytesMax, file)
    const plugin = await readPlugin(read, origin, this.#security)
    if (plugin.manifest.name !== name)
      throw new AppError('invalid_request', `The manifest in the folder '${name}' has the name '${plugin.manifest.name}'`)
    return { ...plugin, source }
  }

  /** Installs a plugin completely or not at all. It is on stable storage once this resolves. Throws `conflict` when the name is taken. */
  async place({ manifest, manifestBytes, module, source }: Placement): Promise<void> {
    const staged = await this.#newStaging()
    const nameTaken = () =>
      new AppError('conflict', `'${manifest.name}' is already installed; run 'sluice plugin remove ${manifest.name}' first`)
    try {
      if (await exists(join(this.path, manifest.name))) throw nameTaken()
      if ((await this.names()).length >= PLUGINS_MAX)
        throw new AppError('conflict', `There are already ${PLUGINS_MAX} plugins, the maximum; remove one first`)
      await mkdir(staged, { mode: 0o700 })
      await writeDurably(join(staged, MANIFEST_FILE), manifestBytes)
      await writeDurably(join(staged, manifest.wasm_path), module)
      await writeDurably(join(staged, SOURCE_FILE), Buffer.from(JSON.stringify({ source })))
      await syncFolder(staged)
      await rename(staged, join(this.path, manifest.name)).catch((error: NodeJS.ErrnoException) => {
        throw ['ENOTEMPTY', 'EEXIST', 'ENOTDIR'].includes(error.code ?? '') ? nameTaken() : error
      })
    } catch (error) {
      await rm(staged, { recursive: true, force: true })
      throw error
    }
    await syncFolder(this.path)
  }

  /** Removes a plugin, even one that is not valid. Throws `not_found`. */
  async remove(name: string): Promise<void> {
    const folder = await this.#folderOf(name)
    const staged = await this.#newStaging()
    await rename(folder, staged)
    await syncFolder(this.path)
    await rm(staged, { recursive: true, force: true })
  }

  /** Returns a text that changes whenever a plugin is added or removed. */
  async stamp(): Promise<string> {
    return stat(this.path, { bigint: true }).then(
      ({ ino, mtimeNs }) => `${ino}:${mtimeNs}`,
      () => 'none',
    )
  }

  /**
   * Resolves once `stamp` no longer equals `known`, or `signal` aborts. Polls, because network file systems do not report changes
   * by other machines.
   */
  async untilChanged(known: string, clock: Clock, signal: AbortSignal): Promise<void> {
    do await clock.sleep(POLL_MS, signal)
    while (!signal.aborted && (await this.stamp()) === known)
  }

  async #folderOf(name: string): Promise<string> {
    const folder = join(this.path, name)
    // The name must be valid before its path is used.
    const found = isPluginName(name) ? await lstat(folder).catch(() => undefined) : undefined
    if (!found) throw new AppError('not_found', `The plugin '${name.slice(0, 128)}' is not installed`)
    if (!found.isDirectory()) throw new AppError('invalid_request', `${folder} is not a folder`)
    return folder
  }

  /** Returns the path of a new staging folder, after deleting the ones of interrupted commands. */
  async #newStaging(): Promise<string> {
    const staging = join(this.path, STAGING)
    await mkdir(staging, { recursive: true, mode: 0o700 })
    for (const name of await readdir(staging)) {
      const path = join(staging, name)
      // Another command may have removed it meanwhile.
      const { mtimeMs } = await lstat(path).catch(() => ({ mtimeMs: Number.POSITIVE_INFINITY }))
      if (Date.now() - mtimeMs > STALE_MS) await rm(path, { recursive: true, force: true })
    }
    return join(staging, randomUUID())
  }
}

async function sourceOf(folder: string): Promise<string> {
  const bytes = await readRegularFile(join(folder, SOURCE_FILE), SOURCE_BYTES_MAX, SOURCE_FILE)
  return bytes ? textAt(parsedOrUndefined(bytes), 'source') : ''
}

const exists = (path: string): Promise<boolean> =>
  lstat(path).then(
    () => true,
    () => false,
  )

async function writeDurably(path: string, bytes: Uint8Array): Promise<void> {
  const file = await open(path, 'wx', 0o600)
  try {
    await file.writeFile(bytes)
    await file.sync()
  } finally {
    await file.close()
  }
}

async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, 'r')
  try {
    await folder.sync()
  } finally {
    await folder.close()
  }
}
