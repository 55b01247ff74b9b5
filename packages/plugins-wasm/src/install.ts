/** Installs a plugin from a folder of this machine or a URL: everything is checked in memory before anything is written. */
import { stat } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { AppError, type Host } from '@sluice/sdk'
import type { PluginsConfig } from './config.ts'
import { fetchArchive } from './fetch-archive.ts'
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
  const read = isUrl ? fromArchive(await fetchArchive(host, from, signal)) : await fromDirectory(source)
  const keepManifest: ReadFile = async (name, bytesMax) => {
    const bytes = await read(name, bytesMax)
    if (!bytes) throw new AppError('not_found', `there is no ${name} in ${isUrl ? 'the archive' : source}`)
    if (name === MANIFEST_FILE) manifestBytes = new Uint8Array(bytes)
    return bytes
  }
  const plugin = await readPlugin(keepManifest, isUrl ? 'url' : 'directory', config.security)
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
  if (!found.isDirectory()) throw new AppError('invalid_request', `${directory} is no folder; archives are installed from an https URL`)
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
