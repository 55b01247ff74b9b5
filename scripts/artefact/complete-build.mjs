// Adds to a bundle what belongs to a release of it: the program `sluice`, the manifests of npm, the manual page, shell completions,
// licences, the installers, the bill of materials and checksums.
import { spawnSync } from 'node:child_process'
import { cpSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { CATALOGUE } from '../../packages/sdk/src/feature/catalogue.ts'
import { NODE_MIN } from '../../packages/sdk/src/node-version.ts'
import { filesBelow } from '../files-below.mjs'
import { bundledPackages, importedOutside } from './bundled-packages.mjs'
import { CHECKSUMS, checksums } from './checksums.mjs'
import { licenceProblems, thirdPartyNotices } from './licences.mjs'
import { layOut, readLock } from './locked-packages.mjs'
import { manPage } from './man-page.mjs'
import { npmManifest, npmShrinkwrap } from './npm-manifest.mjs'
import { billOfMaterials } from './sbom.mjs'

const SHELLS = { bash: 'sluice.bash', zsh: 'sluice.zsh', fish: 'sluice.fish' }
const FEATURE_ENTRY = /(?:^|\/)packages\/([\w-]+)\/src\/index\.ts$/
const EXECUTABLE = 0o755
/** Files of this repository that a build contains, by their names in it. */
const COPIED = {
  LICENSE: 'LICENSE',
  'install.sh': 'install.sh',
  'install.ps1': 'install.ps1',
  'install.bat': 'install.bat',
  'scripts/install/install.mjs': 'install.mjs',
  'scripts/toolchain/node/package-lock.json': 'node-runtime.json',
}

/** Returns the program that starts the bundle. It is a CommonJS script, which Node older than the required one can run too. */
const launcher = ([majorMin, minorMin]) => `#!/usr/bin/env node
// Starts Sluice. Every version of Node can read this file, so an old one prints a sentence and not a syntax error.
'use strict'
const [major, minor] = process.versions.node.split('.').map(Number)
if (major > ${majorMin} || (major === ${majorMin} && minor >= ${minorMin})) import('./sluice.mjs')
else {
  console.error('sluice: this is Node ' + process.versions.node + '; Sluice needs Node ${majorMin}.${minorMin} or newer')
  process.exitCode = 1
}
`

/** Returns the ids of the features in a bundle, sorted. */
const featuresIn = ({ inputs }) =>
  Object.keys(inputs)
    .flatMap((input) => FEATURE_ENTRY.exec(input)?.[1] ?? [])
    .filter((id) => Object.hasOwn(CATALOGUE, id))
    .sort()

function completion(folder, shell) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [join(folder, 'sluice.mjs'), 'completion', shell], {
    encoding: 'utf8',
    env: { ...process.env, NODE_DISABLE_COMPILE_CACHE: '1' },
  })
  if (status !== 0) throw new Error(`the bundle cannot print its completions for ${shell}: ${stderr}`)
  return stdout
}

/** Writes the files into the folder of a bundle. Throws when the bundle contains a package whose licence is not permissive. */
export function completeBuild({ root, folder, metafile, profile }) {
  const own = JSON.parse(readFileSync(join(root, 'packages/cli/package.json'), 'utf8'))
  const { description } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  const { packages, imported } = bundledPackages(metafile, root)
  const problems = licenceProblems(packages)
  if (problems.length > 0) throw new Error(`the bundle may not contain every package:\n${problems.join('\n')}`)
  const lock = readLock(root)
  const roots = Object.fromEntries(importedOutside(metafile, Object.keys(lock.optional)).map((name) => [name, lock.optional[name]]))
  const tree = layOut(roots, lock.describe)
  const manifest = npmManifest({ ...own, description }, roots, tree)
  const { version, license } = manifest
  const write = (name, data) => writeFileSync(join(folder, name), typeof data === 'string' ? data : `${JSON.stringify(data, null, 2)}\n`)
  writeFileSync(join(folder, 'sluice'), launcher(NODE_MIN.split('.')), { mode: EXECUTABLE })
  write('package.json', manifest)
  write('npm-shrinkwrap.json', npmShrinkwrap(manifest, roots, tree))
  write(
    'sbom.cdx.json',
    billOfMaterials({ version, license, profile, bundled: packages, imported, roots, tree, integrityOf: lock.integrityOf }),
  )
  write('THIRD-PARTY-NOTICES.txt', thirdPartyNotices(packages))
  for (const [path, name] of Object.entries(COPIED)) cpSync(join(root, path), join(folder, name))
  write('sluice.1', manPage({ version, description, ids: featuresIn(metafile) }))
  for (const [shell, name] of Object.entries(SHELLS)) write(name, completion(folder, shell))
  write(CHECKSUMS, checksums(folder, filesBelow(folder)))
}
