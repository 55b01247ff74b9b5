// Writes the package.json and the npm-shrinkwrap.json of a build, from which npm installs it and its optional packages.

const MODULES = 'node_modules/'

/** The optional packages of a build as peers, which npm does not install by itself: `sluice native install` does. */
const optionalPeers = (roots) =>
  Object.keys(roots).length === 0
    ? {}
    : {
        peerDependencies: roots,
        peerDependenciesMeta: Object.fromEntries(Object.keys(roots).map((name) => [name, { optional: true }])),
      }

/**
 * Returns the `package.json` of a build. Its optional packages have exact versions, and those that are compiled are allowed to run
 * their install script. The manifest has no `type`, so that the program `sluice` starts with every version of Node.
 */
export function npmManifest({ version, description, license, engines }, roots, tree) {
  const compiled = [...tree]
    .filter(([, { isCompiled }]) => isCompiled)
    .map(([path]) => path.slice(path.lastIndexOf(MODULES) + MODULES.length))
  return {
    name: 'sluice',
    version,
    description,
    license,
    keywords: ['agent', 'agent-runtime', 'daemon', 'webhooks', 'chat'],
    engines,
    bin: { sluice: 'sluice' },
    man: ['./sluice.1'],
    ...optionalPeers(roots),
    ...(compiled.length > 0 && { allowScripts: Object.fromEntries(compiled.map((name) => [name, true])) }),
  }
}

/** Returns the `npm-shrinkwrap.json`: the exact versions and hashes of all optional packages and of their dependencies. */
export function npmShrinkwrap({ name, version, license, engines, bin }, roots, tree) {
  const root = { name, version, license, bin, engines, ...optionalPeers(roots) }
  const entries = [...tree].map(([path, locked]) => {
    const { integrity, dependencies, optionalDependencies: optional, engines: needs, cpu, os, libc, hasInstallScript } = locked
    return [
      path,
      {
        version: locked.version,
        integrity,
        optional: true,
        peer: true,
        ...(hasInstallScript && { hasInstallScript }),
        ...(Object.keys(dependencies).length > 0 && { dependencies }),
        ...(Object.keys(optional).length > 0 && { optionalDependencies: optional }),
        ...(needs && { engines: needs }),
        ...(cpu && { cpu }),
        ...(os && { os }),
        ...(libc && { libc }),
      },
    ]
  })
  return { name, version, lockfileVersion: 3, requires: true, packages: Object.fromEntries([['', root], ...entries]) }
}
