// Makes a release: `pnpm release 0.2.0 --key release.pem`. Writes the entry of CHANGELOG.md and the page of all changes from the changesets, sets the version, records the
// public surface, commits, builds every profile, checks and signs the artefacts in dist/release/<version>, and tags the commit. Nothing is
// pushed. `--dry-run` does the same without commit and tag, keeps the artefacts, and restores the working tree.
import { spawnSync } from 'node:child_process'
import { createPrivateKey, createPublicKey, sign, verify } from 'node:crypto'
import { copyFileSync, globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, relative, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { extract } from 'tar'
import { CHECKSUMS, checksums } from './artefact/checksums.mjs'
import { changesFile, changesPage, readChangesets, withEntry } from './release-notes.mjs'

const ROOT = resolve(import.meta.dirname, '..')
const CALLER = process.cwd()
const PROFILES = ['minimal', 'standard', 'full']
/** The pages and sources that name the version, and what stands before it there. */
const NAMING = [
  ['README.md', 'sluice '],
  ['docs/install.md', 'sluice-'],
  ['packages/channel-discord/src/api.ts', '@sluice/channel-discord, '],
]
const USAGE = 'usage: pnpm release <version> --key <ed25519 private key in PEM> [--dry-run]'

class Refusal extends Error {}

function refuse(message) {
  throw new Refusal(message)
}

function run(command, args, options = {}) {
  const { status, stdout, stderr, error } = spawnSync(command, args, { cwd: ROOT, encoding: 'utf8', maxBuffer: 2 ** 28, ...options })
  if (status !== 0) refuse(`'${[command, ...args].join(' ')}' failed: ${error?.message ?? `${stdout}${stderr}`.trim()}`)
  return stdout.trim()
}

const git = (...args) => run('git', args)
const node = (...args) => run(process.execPath, args)
const readJson = (file) => JSON.parse(readFileSync(join(ROOT, file), 'utf8'))
const edit = (file, change) => writeFileSync(join(ROOT, file), change(readFileSync(join(ROOT, file), 'utf8')))

/** Whether one version is later than another. */
function isLater(version, than) {
  const [a, b] = [version, than].map((text) => text.split('.').map(Number))
  const at = a.findIndex((part, index) => part !== b[index])
  return at >= 0 && a[at] > b[at]
}

function readArguments() {
  const options = { key: { type: 'string' }, 'dry-run': { type: 'boolean' } }
  let read
  try {
    read = parseArgs({ allowPositionals: true, options })
  } catch (error) {
    return refuse(`${error.message}\n${USAGE}`)
  }
  const { values, positionals } = read
  const [version = ''] = positionals
  if (positionals.length !== 1 || !/^\d+\.\d+\.\d+$/.test(version)) refuse(USAGE)
  const isDry = values['dry-run'] === true
  if (values.key === undefined && !isDry) refuse(`a release is signed: give --key.\n${USAGE}`)
  return { version, isDry, key: values.key === undefined ? undefined : readKey(resolve(CALLER, values.key)) }
}

function readKey(file) {
  let key
  try {
    key = createPrivateKey(readFileSync(file))
  } catch (error) {
    return refuse(`--key ${file} cannot be read as a private key in PEM: ${error.message}`)
  }
  if (key.asymmetricKeyType !== 'ed25519')
    refuse(`--key ${file} is ${key.asymmetricKeyType}; make one with 'openssl genpkey -algorithm ed25519 -out release.pem'`)
  return key
}

/** Ends with a reason if the release cannot be made from here. */
function checkState(version, changesets) {
  const { version: last } = readJson('package.json')
  if (!isLater(version, last)) refuse(`${version} is not later than ${last}, the version in package.json`)
  if (git('status', '--porcelain') !== '') refuse('the working tree has changes: commit or stash them first')
  if (git('tag', '--list', `v${version}`) !== '') refuse(`the tag v${version} exists already`)
  if (changesets.length === 0) refuse('no changeset waits in .changeset: there is nothing to release')
  return last
}

/** Writes the version and the changelog, and removes the changesets. */
function writeRelease({ version, last, changesets }) {
  const manifests = ['package.json', 'qa/package.json', ...globSync('packages/*/package.json', { cwd: ROOT })]
  for (const file of manifests) edit(file, (text) => text.replace(`"version": "${last}"`, `"version": "${version}"`))
  for (const [file, before] of NAMING) edit(file, (text) => text.replaceAll(before + last, before + version))
  const date = new Date().toISOString().slice(0, 10)
  edit('CHANGELOG.md', (text) => withEntry(text, { version, date, changesets }))
  const page = join(ROOT, changesFile(version))
  mkdirSync(dirname(page), { recursive: true })
  writeFileSync(page, changesPage({ version, changesets }))
  for (const { file } of changesets) rmSync(join(ROOT, file))
}

/** Records the public surface, which the next releases are compared with. Builds the full profile for that. */
function recordSurface() {
  node('scripts/build.mjs', 'full', '--summary')
  node('qa/src/public-surface/record.ts')
  edit('qa/src/public-surface/accepted.ts', (text) => text.replace(/(export const ACCEPTED[^=]*= )\[.*\]/s, '$1[]'))
  node('scripts/docs.mjs')
}

/** Builds the profiles, and copies their archives and bills of materials into `folder` with their checksums. */
function buildArtefacts(version, folder) {
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true })
  for (const profile of PROFILES) {
    node('scripts/build.mjs', profile, '--summary', '--pack')
    const packed = join(ROOT, 'dist/packed', profile)
    const archive = `sluice-${version}-${profile}.tar.gz`
    copyFileSync(join(packed, archive), join(folder, archive))
    copyFileSync(join(ROOT, 'dist', profile, 'sbom.cdx.json'), join(folder, `sluice-${version}-${profile}.cdx.json`))
    if (profile === 'full') copyFileSync(join(packed, `sluice-${version}.tgz`), join(folder, `sluice-${version}.tgz`))
  }
  const files = globSync('sluice-*', { cwd: folder })
  writeFileSync(join(folder, CHECKSUMS), checksums(folder, files))
}

/** Unpacks every archive, compares its files with the checksums in it, and asks its program for the version. */
async function checkArtefacts(version, folder) {
  for (const name of globSync('*.{tgz,tar.gz}', { cwd: folder })) {
    const place = mkdtempSync(join(tmpdir(), 'sluice-release-'))
    try {
      await extract({ file: join(folder, name), cwd: place, strip: 1 })
      const sums = readFileSync(join(place, CHECKSUMS), 'utf8')
      const files = sums
        .trim()
        .split('\n')
        .map((line) => line.slice(line.indexOf('  ') + 2))
      if (checksums(place, files) !== sums) refuse(`${name} contains other files than its ${CHECKSUMS} says`)
      const answer = run(process.execPath, [join(place, 'sluice'), '--version'])
      if (!answer.startsWith(`sluice ${version} (commit `)) refuse(`the program of ${name} answers '${answer}' to --version`)
      console.log(`checked ${name}: ${answer}`)
    } finally {
      rmSync(place, { recursive: true, force: true })
    }
  }
}

/** Signs the checksums, and writes the public key beside the signature. */
function signArtefacts(key, folder) {
  const sums = readFileSync(join(folder, CHECKSUMS))
  const signature = sign(null, sums, key)
  const publicKey = createPublicKey(key)
  if (!verify(null, sums, publicKey, signature)) refuse('the signature does not verify')
  writeFileSync(join(folder, `${CHECKSUMS}.sig`), signature)
  writeFileSync(join(folder, 'release.pub.pem'), publicKey.export({ type: 'spki', format: 'pem' }))
}

async function release({ version, isDry, key }) {
  const changesets = readChangesets(ROOT)
  const last = checkState(version, changesets)
  const folder = join(ROOT, 'dist/release', version)
  try {
    writeRelease({ version, last, changesets })
    recordSurface()
    if (!isDry) {
      git('add', '--all')
      git('commit', '--quiet', '--message', `chore(release): ${version}`)
    }
    buildArtefacts(version, folder)
    await checkArtefacts(version, folder)
    if (key) signArtefacts(key, folder)
    copyFileSync(join(ROOT, 'CHANGELOG.md'), join(folder, 'CHANGELOG.md'))
    if (!isDry) git('tag', '--annotate', `v${version}`, '--message', `Sluice ${version}`)
  } finally {
    if (isDry) {
      git('restore', '--staged', '--worktree', '.')
      git('clean', '--quiet', '--force', '-d', 'qa/fixtures/public-surface', 'docs/changes')
    }
  }
  const made = isDry ? 'would be' : 'is'
  console.log(`${version} ${made} released with ${changesets.length} changes; the artefacts are in ${relative(CALLER, folder)}`)
  if (!key) console.log('nothing is signed, because --key is missing')
  if (!isDry) console.log(`Push it with 'git push --follow-tags', and publish the files of ${relative(CALLER, folder)}.`)
}

try {
  await release(readArguments())
} catch (error) {
  if (!(error instanceof Refusal)) throw error
  console.error(`release: ${error.message}`)
  process.exitCode = 1
}
