// Reads the optional packages of a bundle and everything they depend on from pnpm-lock.yaml, and lays them out as npm does.
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse } from 'yaml'

const withoutPeers = (version) => version.replace(/\(.*$/s, '')

/** Returns the programs of an installed package, which its install script may need; the lockfile of pnpm does not have them. */
function programsOf(root, name, version) {
  const file = join(root, 'node_modules', '.pnpm', `${name.replace('/', '+')}@${version}`, 'node_modules', name, 'package.json')
  const { bin } = existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : {}
  return typeof bin === 'string' ? { [name.split('/').pop()]: bin } : bin
}

/** Returns the locked versions of optional dependencies of this repository, and a function that describes any locked package. */
export function readLock(root) {
  const { importers, packages, snapshots } = parse(readFileSync(join(root, 'pnpm-lock.yaml'), 'utf8'))
  const { allowBuilds } = parse(readFileSync(join(root, 'pnpm-workspace.yaml'), 'utf8'))
  const optional = Object.entries(importers['.'].optionalDependencies).map(([name, { version }]) => [name, withoutPeers(version)])
  // A package with peers has one snapshot for each set of them; the dependencies are the same.
  const locked = new Map(Object.entries(snapshots).map(([key, snapshot]) => [withoutPeers(key), snapshot]))
  const describe = (name, version) => {
    const key = `${name}@${version}`
    const { resolution, engines, cpu, os, libc, hasBin } = packages[key]
    const { dependencies = {}, optionalDependencies = {} } = locked.get(key)
    return {
      key,
      version,
      integrity: resolution.integrity,
      dependencies: Object.fromEntries(Object.entries(dependencies).map(([to, at]) => [to, withoutPeers(at)])),
      optionalDependencies: Object.fromEntries(Object.entries(optionalDependencies).map(([to, at]) => [to, withoutPeers(at)])),
      ...Object.fromEntries(Object.entries({ engines, cpu, os, libc }).filter(([, value]) => value !== undefined)),
      bin: hasBin ? programsOf(root, name, version) : undefined,
      hasInstallScript: name in allowBuilds,
      isCompiled: allowBuilds[name],
    }
  }
  const integrityOf = (key) => packages[key]?.resolution.integrity
  return { optional: Object.fromEntries(optional), describe, integrityOf }
}

const childrenOf = ({ dependencies, optionalDependencies }) =>
  Object.entries({ ...dependencies, ...optionalDependencies }).sort(([a], [b]) => (a < b ? -1 : 1))

/**
 * Lays out packages in folders: a map from a path such as `node_modules/a/node_modules/b` to the description of the package there.
 * A package is as far up as no other version is in its place. `roots` maps names to versions.
 */
export function layOut(roots, describe) {
  const placed = new Map()
  const queue = [{ path: '', children: Object.entries(roots).sort(([a], [b]) => (a < b ? -1 : 1)) }]
  for (const { path, children } of queue)
    for (const [name, version] of children) {
      const visible = visibleFrom(path, name, placed)
      if (visible?.version === version) continue
      const target = `${visible ? `${path}/` : ''}node_modules/${name}`
      const described = describe(name, version)
      placed.set(target, described)
      queue.push({ path: target, children: childrenOf(described) })
    }
  return new Map([...placed].sort(([a], [b]) => (a < b ? -1 : 1)))
}

/** Returns the package that code in a folder gets when it imports a name. */
function visibleFrom(path, name, placed) {
  const found = placed.get(`${path && `${path}/`}node_modules/${name}`)
  if (found || path === '') return found
  return visibleFrom(path.slice(0, Math.max(0, path.lastIndexOf('/node_modules/'))), name, placed)
}
