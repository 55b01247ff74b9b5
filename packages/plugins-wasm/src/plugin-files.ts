/** Reads and checks the two files of a plugin, the manifest and the module, from any source. */
import { constants } from 'node:fs'
import { open } from 'node:fs/promises'
import { setImmediate } from 'node:timers/promises'
import { AppError } from '@sluice/sdk'
import type { PluginsConfig } from './config.ts'
import { MANIFEST_FILE, type Manifest, parseManifest } from './manifest.ts'
import { checkTrust, type Origin, type Trust } from './trust.ts'
import { compileModule, importsFor } from './wasm/call-instance.ts'
import { ModuleError } from './wasm/module-error.ts'

export const MODULE_BYTES_MAX = 8_388_608

/** A plugin whose files passed `readPlugin`. */
export interface CheckedPlugin {
  readonly manifest: Manifest
  readonly module: Uint8Array
  readonly trust: Trust
}

/** Returns undefined when the file does not exist. */
export type ReadFile = (name: string, bytesMax: number) => Promise<Uint8Array | undefined>

/** Throws an `AppError` when a file is missing or malformed, a required signature is missing, or the module is not the manifest's. */
export async function readPlugin(read: ReadFile, origin: Origin, security: PluginsConfig['security']): Promise<CheckedPlugin> {
  // The limit of a module applies here because `parseManifest` has a lower limit with a better message.
  const bytes = await read(MANIFEST_FILE, MODULE_BYTES_MAX)
  if (!bytes) throw new AppError('not_found', `${MANIFEST_FILE} is missing`)
  const manifest = parseManifest(bytes)
  const module = await read(manifest.wasm_path, MODULE_BYTES_MAX)
  if (!module) throw new AppError('not_found', `${manifest.wasm_path}, the wasm_path of ${MANIFEST_FILE}, is missing`)
  return { manifest, module, trust: checkTrust(manifest, module, origin, security) }
}

/** Throws `invalid_request` for a module that cannot run. Compiling takes time, so do not call it on the daemon's main thread. */
export async function checkModule({ manifest, module }: CheckedPlugin, { memory_mb, fuel }: PluginsConfig['limits']): Promise<void> {
  await setImmediate()
  try {
    compileModule(module, { memoryMb: memory_mb, fuel, imports: importsFor(manifest.permissions.includes('network')) })
  } catch (error) {
    if (error instanceof ModuleError) throw new AppError('invalid_request', `${manifest.wasm_path} ${error.message}`)
    throw error
  }
}

/**
 * Reads a regular file without following a link or waiting for a pipe. Returns undefined when it does not exist. Throws
 * `invalid_request` for anything else than a regular file, and `too_large`. `name` names the file in messages.
 */
export async function readRegularFile(path: string, bytesMax: number, name: string): Promise<Uint8Array | undefined> {
  const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return undefined
    throw new AppError('invalid_request', `${name} cannot be read as a file: ${error.code}`)
  })
  if (!file) return undefined
  try {
    const stat = await file.stat()
    if (!stat.isFile()) throw new AppError('invalid_request', `${name} is not a regular file`)
    if (stat.size > bytesMax) throw new AppError('too_large', `${name} is larger than ${bytesMax} bytes`)
    const bytes = Buffer.alloc(stat.size)
    const { bytesRead } = await file.read(bytes, 0, bytes.length, 0)
    return bytes.subarray(0, bytesRead)
  } finally {
    await file.close()
  }
}
