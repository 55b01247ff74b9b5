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

/** Returns which packages may run their install script: the ones that are compiled. The others contain the result of their script. */
function allowedScripts(tree) {
  const entries = [...tree].flatMap(([path, { hasInstallScript, isCompiled }]) =>
    hasInstallScript ? [[path.slice(path.lastIndexOf(MODULES) + MODULES.length), isCompiled]] : [],
  )
  return entries.length === 0 ? {} : { allowScripts: Object.fromEntries(entries) }
}

/**
 * Returns the `package.json` of a build, with exact versions of its optional packages. The manifest has no `type`, so that the
 * program `sluice` starts with every version of Node.
 */
export function npmManifest({ version, description, license, engines }, roots, tree) {
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
    ...allowedScripts(tree),
  }
}

/** Returns the `npm-shrinkwrap.json`: the exact versions and hashes of all optional packages and of their dependencies. */
export function npmShrinkwrap({ name, version, license, engines, bin }, roots, tree) {
  const root = { name, version, license, bin, engines, ...optionalPeers(roots) }
  const entries = [...tree].map(([path, locked]) => {
    const { integrity, dependencies, optionalDependencies: optional, engines: needs, cpu, os, libc, bin, hasInstallScript } = locked
    return [
      path,
      {
        version: locked.version,
        integrity,
        optional: true,
        peer: true,
        ...(hasInstallScript && { hasInstallScript }),
        ...(bin && { bin }),
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
