/** The two files a plugin is made of, from wherever they come, and what has to be true of them. */
import { setImmediate } from 'node:timers/promises'
import { AppError } from '@sluice/sdk'
import type { PluginsConfig } from './config.ts'
import { MANIFEST_FILE, type Manifest, parseManifest } from './manifest.ts'
import { checkTrust, type Origin, type Trust } from './trust.ts'
import { compile, importsFor } from './wasm/call-instance.ts'
import { ModuleError } from './wasm/module-error.ts'

export const MODULE_BYTES_MAX = 8_388_608

/** A plugin that was read and is what it claims to be. */
export interface CheckedPlugin {
  readonly manifest: Manifest
  readonly module: Uint8Array
  readonly trust: Trust
}

/** Undefined: there is no such file. */
export type ReadFile = (name: string, bytesMax: number) => Promise<Uint8Array | undefined>

/** Throws for what is missing, malformed, not signed as it has to be, or not the module the manifest names. */
export async function readPlugin(read: ReadFile, origin: Origin, security: PluginsConfig['security']): Promise<CheckedPlugin> {
  // The manifest has a bound of its own, which says so more clearly.
  const bytes = await read(MANIFEST_FILE, MODULE_BYTES_MAX)
  if (!bytes) throw new AppError('not_found', `there is no ${MANIFEST_FILE}`)
  const manifest = parseManifest(bytes)
  const module = await read(manifest.wasm_path, MODULE_BYTES_MAX)
  if (!module) throw new AppError('not_found', `there is no ${manifest.wasm_path}, which ${MANIFEST_FILE} names`)
  return { manifest, module, trust: checkTrust(manifest, module, origin, security) }
}

/** Throws `invalid_request` for a module that could not run. Takes a moment: never on the daemon's main thread. */
export async function checkModule({ manifest, module }: CheckedPlugin, { memory_mb, fuel }: PluginsConfig['limits']): Promise<void> {
  await setImmediate()
  try {
    compile(module, { memoryMb: memory_mb, fuel, imports: importsFor(manifest.permissions.includes('network')) })
  } catch (error) {
    if (error instanceof ModuleError) throw new AppError('invalid_request', `${manifest.wasm_path} ${error.message}`)
    throw error
  }
}
