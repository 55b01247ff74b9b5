// The packages that are published: their manifests and the entries of their tarballs.
import { existsSync, globSync, readFileSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'

export const ROOT = resolve(import.meta.dirname, '..')

/**
 * Returns the public packages, sorted by folder. `entries` are the entries of the tarball: `key` as in `exports`, and the paths of the
 * source, the bundled module and its declarations, which start at `folder`.
 */
export const publicPackages = () =>
  globSync('packages/*/package.json', { cwd: ROOT })
    .toSorted()
    .map((file) => ({ folder: dirname(join(ROOT, file)), manifest: JSON.parse(readFileSync(join(ROOT, file), 'utf8')) }))
    .filter(({ manifest }) => manifest.private !== true)
    .map(({ folder, manifest }) => ({ id: basename(folder), folder, manifest, entries: entriesOf(folder, manifest) }))

function entriesOf(folder, { name, publishConfig }) {
  return Object.entries(publishConfig?.exports ?? {}).map(([key, { types, default: module }]) => {
    const source = module.replace(/^\.\/dist\//, 'src/').replace(/\.js$/, '.ts')
    if (!existsSync(join(folder, source))) throw new Error(`${name} publishes '${key}', but ${source} does not exist`)
    return { key, source, module, types }
  })
}
