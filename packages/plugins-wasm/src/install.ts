/** Installs a plugin from a folder or an archive of this machine, or from a URL: everything is checked in memory before anything is written. */
import { stat } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { AppError, type Host } from '@sluice/sdk'
import type { PluginsConfig } from './config.ts'
import { fetchArchive, openArchive } from './fetch-archive.ts'
import { MANIFEST_FILE } from './manifest.ts'
import { type CheckedPlugin, checkModule, type ReadFile, readPlugin } from './plugin-files.ts'
import type { PluginFolder } from './plugin-folder.ts'
import { readRegularFile } from './read-regular-file.ts'
import { checkToolName } from './tool-names.ts'

export interface InstallDeps {
  readonly host: Pick<Host, 'publicFetch'>
  readonly config: PluginsConfig
  readonly folder: PluginFolder
}

/** Throws what keeps it from being installed; then nothing of it is left. */
export async function install({ host, config, folder }: InstallDeps, from: string, signal: AbortSignal): Promise<CheckedPlugin> {
  const isUrl = /^[a-z][a-z0-9+.-]*:\/\//i.test(from)
  const source = isUrl ? withoutQuery(from) : resolve(from)
  let manifestBytes = new Uint8Array()
  // An archive may come from anywhere, also where it was downloaded by hand: it needs the signature that one at a URL needs.
  const isPacked = isUrl || /\.(?:tar\.gz|tgz)$/i.test(from)
  const read = isPacked ? fromArchive(await (isUrl ? fetchArchive(host, from, signal) : openArchive(source))) : await fromDirectory(source)
  const keepManifest: ReadFile = async (name, bytesMax) => {
    const bytes = await read(name, bytesMax)
    if (!bytes) throw new AppError('not_found', `there is no ${name} in ${isPacked ? 'the archive' : source}`)
    if (name === MANIFEST_FILE) manifestBytes = new Uint8Array(bytes)
    return bytes
  }
  const plugin = await readPlugin(keepManifest, isPacked ? 'url' : 'directory', config.security)
  checkToolName(plugin.manifest.name)
  await checkModule(plugin, config.limits)
  signal.throwIfAborted()
  await folder.place({ ...plugin, manifestBytes, source })
  return plugin
}

async function fromDirectory(directory: string): Promise<ReadFile> {
  const found = await stat(directory).catch((cause: NodeJS.ErrnoException) => {
    const isMissing = ['ENOENT', 'ENOTDIR'].includes(cause.code ?? '')
    throw new AppError('not_found', isMissing ? `there is no folder ${directory}` : `${directory} cannot be read: ${cause.code}`, { cause })
  })
  if (!found.isDirectory()) throw new AppError('invalid_request', `${directory} is neither a folder nor a .tar.gz`)
  return (name, bytesMax) => readRegularFile(join(directory, name), bytesMax, name)
}

const fromArchive =
  (files: ReadonlyMap<string, Uint8Array>): ReadFile =>
  async (name, bytesMax) => {
    const bytes = files.get(name)
    if (bytes && bytes.length > bytesMax) throw new AppError('too_large', `${name} is larger than ${bytesMax} bytes`)
    return bytes
  }

/** As it may be kept and shown: what comes after the path may be a key. */
function withoutQuery(text: string): string {
  const url = URL.parse(text)
  if (!url) throw new AppError('invalid_request', 'the URL is not valid')
  return `${url.origin}${url.pathname}`
}
