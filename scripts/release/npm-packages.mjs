// Packs the packages for npm, and checks the tarballs as npm installs them into an empty folder.
import { spawnSync } from 'node:child_process'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { packAll } from '../pack.mjs'
import { publicPackages } from '../packages.mjs'
import { ROOT, refuse } from './shell.mjs'

/** Returns the packages in an order in which each follows the packages that it needs. Throws a `Refusal` when one cannot be published. */
export function publishOrder(packages, version) {
  const byName = new Map(packages.map((each) => [each.manifest.name, each]))
  const ordered = new Set()
  const add = ({ id, manifest }, path) => {
    const { name, dependencies = {}, peerDependencies = {}, optionalDependencies = {} } = manifest
    if (path.includes(name)) refuse(`packages need each other: ${[...path, name].join(' > ')}`)
    if (ordered.has(name)) return
    if (name !== `@sluice/${id}`) refuse(`packages/${id} has the name ${name} instead of @sluice/${id}`)
    if (manifest.version !== version) refuse(`${name} has the version ${manifest.version} instead of ${version}`)
    if (manifest.publishConfig?.access !== 'public')
      refuse(`${name} would be published privately: its publishConfig.access is not "public"`)
    for (const needed of Object.keys({ ...dependencies, ...peerDependencies, ...optionalDependencies })) {
      if (!needed.startsWith('@sluice/')) continue
      const found = byName.get(needed)
      if (found === undefined) refuse(`${name} needs ${needed}, which is not published`)
      add(found, [...path, name])
    }
    ordered.add(name)
  }
  for (const each of packages) add(each, [])
  return [...ordered]
}

/**
 * Packs the packages into `folder` and runs the tests of packages on these tarballs: contents, types, licences, versions, and an installation
 * of all of them. Returns `{ name, file }` of each in the order in which they can be published.
 */
export async function makePackages(folder, version) {
  const order = publishOrder(publicPackages(), version)
  rmSync(folder, { recursive: true, force: true })
  const packed = await packAll(folder)
  const { status, stdout, stderr } = spawnSync(
    join(ROOT, 'node_modules/.bin/vitest'),
    ['run', '--config', 'vitest.workspace.ts', 'qa/src/packages'],
    { cwd: ROOT, encoding: 'utf8', maxBuffer: 2 ** 28, env: { ...process.env, SLUICE_SLOW: '1', SLUICE_PACKED: folder } },
  )
  if (status !== 0) refuse(`the packages for npm fail their tests:\n${stdout}${stderr}`)
  console.log(`checked ${packed.length} packages for npm`)
  return order.map((name) => ({ name, file: packed.find((each) => each.name === name).file }))
}
