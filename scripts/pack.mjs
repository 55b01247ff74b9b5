// Packs every public package: `node scripts/pack.mjs <folder>` builds them if a source changed, and writes one .tgz for each.
import { execFileSync } from 'node:child_process'
import { mkdirSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { buildPackagesUnlessFresh } from './build-packages.mjs'
import { publicPackages, ROOT } from './packages.mjs'

/**
 * Builds the public packages unless that is done, packs them into `folder`, and resolves to `{ id, name, version, file }` of each;
 * `file` is the path of the tarball. In a tarball, dependencies on other packages of the workspace have the exact version.
 */
export async function packAll(folder) {
  await buildPackagesUnlessFresh()
  mkdirSync(folder, { recursive: true })
  const packages = publicPackages()
  const filters = packages.flatMap(({ manifest }) => ['--filter', manifest.name])
  execFileSync('pnpm', [...filters, '--recursive', 'pack', '--pack-destination', resolve(folder)], {
    cwd: ROOT,
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  return packedIn(folder)
}

/** Returns `{ id, name, version, file }` of each tarball that `packAll` has made in `folder`. */
export const packedIn = (folder) =>
  publicPackages().map(({ id, manifest: { name, version } }) => ({
    id,
    name,
    version,
    file: join(resolve(folder), tarballName(name, version)),
  }))

const tarballName = (name, version) => `${name.replace('@', '').replace('/', '-')}-${version}.tgz`

if (import.meta.main) {
  const [folder = 'dist/packages'] = process.argv.slice(2)
  const packed = await packAll(folder)
  console.log(`packed ${packed.length} packages into ${folder}`)
}
