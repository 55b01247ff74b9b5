/** Reads the optional packages of a build from its npm-shrinkwrap.json, and selects some of them with everything they depend on. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'

export interface LockedPackage {
  readonly version?: string
  readonly dependencies?: Readonly<Record<string, string>>
  readonly optionalDependencies?: Readonly<Record<string, string>>
  readonly peerDependencies?: Readonly<Record<string, string>>
}

/** The part of npm's lockfile that is used here. The keys of `packages` are folders; the key of the build itself is empty. */
export interface Lock {
  readonly name: string
  readonly version: string
  readonly packages: Readonly<Record<string, LockedPackage>>
}

export interface Build {
  readonly lock: Lock
  /** The exact versions of the optional packages, by name. */
  readonly versions: Readonly<Record<string, string>>
  /** The packages that may run their install script. */
  readonly allowScripts: Readonly<Record<string, boolean>>
}

/** Reads the manifests of a build; undefined when the folder is not that of a build. */
export async function readBuild(folder: string): Promise<Build | undefined> {
  const [lock, manifest] = await Promise.all(['npm-shrinkwrap.json', 'package.json'].map((name) => readJson(join(folder, name))))
  if (!lock || !manifest) return undefined
  return { lock: lock as Lock, versions: manifest.peerDependencies ?? {}, allowScripts: manifest.allowScripts ?? {} }
}

// biome-ignore lint/suspicious/noExplicitAny: the files are written by scripts/build.mjs, and their checksums are verified at installation
async function readJson(file: string): Promise<any> {
  const text = await readFile(file, 'utf8').catch(() => undefined)
  return text === undefined ? undefined : JSON.parse(text)
}

export interface Project {
  readonly manifest: {
    readonly dependencies: Readonly<Record<string, string | undefined>>
    readonly allowScripts: Readonly<Record<string, boolean>>
  }
  readonly lockfile: object
}

/** Returns the `package.json` and the lockfile of a project that has only these packages of a build. */
export function projectOf({ lock, versions, allowScripts }: Build, names: readonly string[]): Project {
  const dependencies = Object.fromEntries(names.map((name) => [name, versions[name]]))
  const project = { name: 'sluice-native', version: lock.version, private: true, dependencies }
  // npm passes over the failure of an optional package, so only builds for other machines are optional.
  const required = reachable(lock, names, ({ dependencies: needed }) => Object.keys(needed ?? {}))
  const folders = reachable(lock, names, (entry) => Object.keys({ ...entry.dependencies, ...entry.optionalDependencies }))
  const packages = Object.entries(lock.packages).flatMap(([folder, entry]) =>
    folders.has(folder) ? [[folder, { ...entry, peer: undefined, optional: required.has(folder) ? undefined : true }]] : [],
  )
  return {
    manifest: { ...project, allowScripts },
    lockfile: { ...project, lockfileVersion: 3, requires: true, packages: { '': project, ...Object.fromEntries(packages) } },
  }
}

type Dependencies = (entry: LockedPackage) => readonly string[]

/** Returns the folders of these packages and of everything that they depend on. */
function reachable({ packages }: Lock, names: readonly string[], dependenciesOf: Dependencies): ReadonlySet<string> {
  const found = new Set<string>()
  const visit = (from: string, name: string): void => {
    const folder = visibleFrom(from, name, packages)
    if (folder === undefined || found.has(folder)) return
    found.add(folder)
    for (const next of dependenciesOf(packages[folder] ?? {})) visit(folder, next)
  }
  for (const name of names) visit('', name)
  return found
}

/** Returns the folder that code of the package in `from` imports `name` from. */
function visibleFrom(from: string, name: string, packages: Lock['packages']): string | undefined {
  const folder = `${from && `${from}/`}node_modules/${name}`
  if (Object.hasOwn(packages, folder)) return folder
  return from === '' ? undefined : visibleFrom(from.slice(0, Math.max(0, from.lastIndexOf('/node_modules/'))), name, packages)
}
