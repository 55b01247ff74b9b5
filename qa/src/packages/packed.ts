/** The public packages as npm installs them: packed into tarballs, and installed into a folder outside of the repository. */
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'

const ROOT = resolve(import.meta.dirname, '../../..')

export interface PackedPackage {
  /** The folder in `packages/`. */
  readonly id: string
  readonly name: string
  readonly version: string
  /** The path of the tarball. */
  readonly file: string
}

/** The `package.json` of a tarball. */
export interface PackedManifest {
  readonly name: string
  readonly exports: Readonly<Record<string, { readonly types: string; readonly default: string }>>
  readonly keywords?: readonly string[]
  readonly license?: string
  readonly dependencies?: Readonly<Record<string, string>>
  readonly optionalDependencies?: Readonly<Record<string, string>>
  readonly peerDependencies?: Readonly<Record<string, string>>
}

export const readManifest = (folder: string): PackedManifest => JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))

/** Builds the packages and packs them into `folder`; or returns those in the folder SLUICE_PACKED, which `pnpm release` publishes. */
export async function packAll(folder: string): Promise<readonly PackedPackage[]> {
  const script = (await import(join(ROOT, 'scripts/pack.mjs'))) as {
    packAll(folder: string): Promise<readonly PackedPackage[]>
    packedIn(folder: string): readonly PackedPackage[]
  }
  return process.env.SLUICE_PACKED ? script.packedIn(process.env.SLUICE_PACKED) : script.packAll(folder)
}

/** Installs tarballs and the packages they need with npm into the new folder `folder`. Runs no install scripts. */
export function installTarballs(folder: string, files: readonly string[]): void {
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, 'package.json'), '{ "private": true, "type": "module" }\n')
  const flags = ['--ignore-scripts', '--no-audit', '--no-fund', '--prefer-offline', '--loglevel=error', '--logs-max=0']
  execFileSync('npm', ['install', ...flags, ...files], { cwd: folder, stdio: ['ignore', 2, 2] })
}

/** Packs all packages and installs them together. `using` removes the folder. */
export async function installAll() {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-packages-'))
  const packages = await packAll(join(folder, 'tarballs'))
  const app = join(folder, 'app')
  installTarballs(
    app,
    packages.map(({ file }) => file),
  )
  return {
    packages,
    app,
    folderOf: ({ name }: PackedPackage) => join(app, 'node_modules', name),
    [Symbol.dispose]: () => rmSync(folder, { recursive: true, force: true }),
  }
}
