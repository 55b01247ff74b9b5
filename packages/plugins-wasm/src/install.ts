/** Installs a plugin from a folder, an archive on this machine or a URL. Checks everything in memory before it writes anything. */
import { stat } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { AppError, type Host } from '@sluice/sdk'
import type { PluginsConfig } from './config.ts'
import { fetchArchive, openArchive } from './fetch-archive.ts'
import { checkToolName, MANIFEST_FILE } from './manifest.ts'
import { type CheckedPlugin, checkModule, type ReadFile, readPlugin, readRegularFile } from './plugin-files.ts'
import type { PluginFolder } from './plugin-folder.ts'

/** Where the files of a plugin come from. */
interface Source {
  /** The folder, archive or URL that is recorded and shown. */
  readonly name: string
  readonly isPacked: boolean
  readonly read: ReadFile
}

export class PluginInstaller {
  readonly #publicFetch: Host['publicFetch']
  readonly #config: PluginsConfig
  readonly #folder: PluginFolder

  constructor(publicFetch: Host['publicFetch'], config: PluginsConfig, folder: PluginFolder) {
    this.#publicFetch = publicFetch
    this.#config = config
    this.#folder = folder
  }

  /** `cwd` is the folder that a relative path refers to. Throws an `AppError` for a plugin that cannot be installed, and then leaves no files behind. */
  async install(from: string, cwd: string, signal: AbortSignal): Promise<CheckedPlugin> {
    const { name, isPacked, read } = await this.#open(from, cwd, signal)
    let manifestBytes = new Uint8Array()
    const readAndKeepManifest: ReadFile = async (file, bytesMax) => {
      const bytes = await read(file, bytesMax)
      if (!bytes) throw new AppError('not_found', `${isPacked ? 'The archive' : name} has no file ${file}`)
      if (file === MANIFEST_FILE) manifestBytes = new Uint8Array(bytes)
      return bytes
    }
    // An archive on this machine may have been downloaded, so it needs the same signature as one from a URL.
    const plugin = await readPlugin(readAndKeepManifest, isPacked ? 'url' : 'directory', this.#config.security)
    checkToolName(plugin.manifest.name)
    await checkModule(plugin, this.#config.limits)
    signal.throwIfAborted()
    await this.#folder.place({ ...plugin, manifestBytes, source: name })
    return plugin
  }

  async #open(from: string, cwd: string, signal: AbortSignal): Promise<Source> {
    if (/^[a-z][a-z0-9+.-]*:\/\//i.test(from)) {
      const name = withoutQuery(from)
      return { name, isPacked: true, read: fromArchive(await fetchArchive(this.#publicFetch, from, signal)) }
    }
    const path = resolve(cwd, from)
    const isPacked = /\.(?:tar\.gz|tgz)$/i.test(from)
    return { name: path, isPacked, read: isPacked ? fromArchive(await openArchive(path)) : await fromDirectory(path) }
  }
}

async function fromDirectory(directory: string): Promise<ReadFile> {
  const found = await stat(directory).catch((cause: NodeJS.ErrnoException) => {
    const isMissing = ['ENOENT', 'ENOTDIR'].includes(cause.code ?? '')
    const detail = isMissing ? `The folder ${directory} does not exist` : `${directory} cannot be read: ${cause.code}`
    throw new AppError('not_found', detail, { cause })
  })
  if (!found.isDirectory()) throw new AppError('invalid_request', `${directory} is neither a folder nor a .tar.gz file`)
  return (name, bytesMax) => readRegularFile(join(directory, name), bytesMax, name)
}

const fromArchive =
  (files: ReadonlyMap<string, Uint8Array>): ReadFile =>
  async (name, bytesMax) => {
    const bytes = files.get(name)
    if (bytes && bytes.length > bytesMax) throw new AppError('too_large', `${name} is larger than ${bytesMax} bytes`)
    return bytes
  }

/** The recorded source omits the query of a URL, which may contain a key. */
function withoutQuery(text: string): string {
  const url = URL.parse(text)
  if (!url) throw new AppError('invalid_request', 'The URL is not valid')
  return `${url.origin}${url.pathname}`
}
