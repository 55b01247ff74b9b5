/** The folder plugins are installed in: one folder each, named for the plugin; it changes by renaming and in no other way. */
import { randomUUID } from 'node:crypto'
import { lstat, mkdir, open, readdir, rename, rm, stat } from 'node:fs/promises'
import { homedir } from 'node:os'
import { join, resolve } from 'node:path'
import { parsedOrUndefined, textAt } from '@sluice/kit/foreign-json'
import { AppError, type Host } from '@sluice/sdk'
import type { PluginsConfig } from './config.ts'
import { isPluginName, MANIFEST_FILE } from './manifest.ts'
import { type CheckedPlugin, readPlugin } from './plugin-files.ts'
import { readRegularFile } from './read-regular-file.ts'
import type { Origin } from './trust.ts'

/** No more are installed or loaded. */
export const PLUGINS_MAX = 64
/** Where a plugin is put together or taken apart. No plugin has such a name. */
const STAGING = '.staging'
const SOURCE_FILE = 'source.json'
const SOURCE_BYTES_MAX = 16_384
/** What an interrupted command has left there is removed after so long. */
const STALE_MS = 3_600_000

export interface Installed extends CheckedPlugin {
  /** The URL or folder it was installed from; empty where it was copied by hand. */
  readonly source: string
}

/** The files to place, and where they came from. */
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

  static of({ dataDir }: Pick<Host, 'dataDir'>, { plugins_dir, security }: PluginsConfig): PluginFolder {
    return new PluginFolder(resolve(dataDir, plugins_dir.replace(/^~(?=\/|$)/, homedir())), security)
  }

  /** Sorted, at most `PLUGINS_MAX`; whether they are any good is for `read` to find out. */
  async names(): Promise<readonly string[]> {
    const entries = await readdir(this.path, { withFileTypes: true }).catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return []
      throw error
    })
    const names = entries.filter((entry) => entry.isDirectory() && isPluginName(entry.name)).map(({ name }) => name)
    return names.sort().slice(0, PLUGINS_MAX)
  }

  /** Throws `not_found`, or what is wrong with it. */
  async read(name: string): Promise<Installed> {
    const folder = await this.#folderOf(name)
    const source = await sourceOf(folder)
    const origin: Origin = /^https:/.test(source) ? 'url' : 'directory'
    const read = (file: string, bytesMax: number) => readRegularFile(join(folder, file), bytesMax, file)
    const plugin = await readPlugin(read, origin, this.#security)
    if (plugin.manifest.name !== name)
      throw new AppError('invalid_request', `its manifest is of '${plugin.manifest.name}', not of '${name}'`)
    return { ...plugin, source }
  }

  /** All or nothing, and on stable storage once this resolves. Throws `conflict` if there is one of that name. */
  async place({ manifest, manifestBytes, module, source }: Placement): Promise<void> {
    const staged = await this.#newStaging()
    const there = () =>
      new AppError('conflict', `'${manifest.name}' is installed already; 'sluice plugin remove ${manifest.name}' makes room`)
    try {
      if (await exists(join(this.path, manifest.name))) throw there()
      if ((await this.names()).length >= PLUGINS_MAX)
        throw new AppError('conflict', `there are ${PLUGINS_MAX} plugins, and no more are loaded`)
      await mkdir(staged, { mode: 0o700 })
      await writeDurably(join(staged, MANIFEST_FILE), manifestBytes)
      await writeDurably(join(staged, manifest.wasm_path), module)
      await writeDurably(join(staged, SOURCE_FILE), Buffer.from(JSON.stringify({ source })))
      await syncFolder(staged)
      await rename(staged, join(this.path, manifest.name)).catch((error: NodeJS.ErrnoException) => {
        throw ['ENOTEMPTY', 'EEXIST', 'ENOTDIR'].includes(error.code ?? '') ? there() : error
      })
    } catch (error) {
      await rm(staged, { recursive: true, force: true })
      throw error
    }
    await syncFolder(this.path)
  }

  /** Throws `not_found`. What is wrong with the plugin does not matter. */
  async remove(name: string): Promise<void> {
    const folder = await this.#folderOf(name)
    const staged = await this.#newStaging()
    await rename(folder, staged)
    await syncFolder(this.path)
    await rm(staged, { recursive: true, force: true })
  }

  /** Differs from before once a plugin came or went. */
  async stamp(): Promise<string> {
    return stat(this.path, { bigint: true }).then(
      ({ ino, mtimeNs }) => `${ino}:${mtimeNs}`,
      () => 'none',
    )
  }

  async #folderOf(name: string): Promise<string> {
    const folder = join(this.path, name)
    // The name is looked at first: it decides what the path is.
    const found = isPluginName(name) ? await lstat(folder).catch(() => undefined) : undefined
    if (!found) throw new AppError('not_found', `no plugin '${name.slice(0, 128)}' is installed`)
    if (!found.isDirectory()) throw new AppError('invalid_request', `${folder} is no folder`)
    return folder
  }

  async #newStaging(): Promise<string> {
    const staging = join(this.path, STAGING)
    await mkdir(staging, { recursive: true, mode: 0o700 })
    for (const left of await readdir(staging)) {
      const path = join(staging, left)
      // what is under way may be done by now
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
