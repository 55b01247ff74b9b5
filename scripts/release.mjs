// Makes a release: `pnpm release 0.2.0 --key release.pem --base <layout>`. Writes the entry of CHANGELOG.md and the page of all changes from the
// changesets, sets the version, records the public surface, commits, builds every profile, the packages for npm and the container image, checks and
// signs them in dist/release/<version> with the scripts that install and publish them, and tags the commit. Nothing is pushed. `--dry-run` does the
// same without commit and tag, keeps the artefacts, and restores the working tree.
import { createPrivateKey, createPublicKey, generateKeyPairSync, sign, verify } from 'node:crypto'
import { chmodSync, copyFileSync, globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { basename, dirname, join, relative, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { CHECKSUMS, checksums } from './artefact/checksums.mjs'
import { checkArchives, checkInstallScript } from './release/check-artefacts.mjs'
import { checkImage, makeImage } from './release/image.mjs'
import { INSTALL_SCRIPT, installScript } from './release/install-script.mjs'
import { makePackages } from './release/npm-packages.mjs'
import { PUBLISH_SCRIPT, publishScript, webAddress } from './release/publish-script.mjs'
import { Refusal, ROOT, refuse, run } from './release/shell.mjs'
import { changesFile, changesPage, entryOf, readChangesets, withEntry } from './release-notes.mjs'

const CALLER = process.cwd()
const PROFILES = ['minimal', 'standard', 'full']
/** The profile of the container image. */
const IMAGE_PROFILE = 'standard'
/** The pages and sources that name the version, and the text before it. */
const NAMING = [
  ['README.md', 'sluice '],
  ['docs/install.md', 'sluice-'],
  ['packages/channel-discord/src/api.ts', '@sluice/channel-discord, '],
]
const USAGE =
  'usage: pnpm release <version> --key <ed25519 private key in PEM> [--base <OCI layout of Node>] [--downloads <URL>] [--dry-run]'

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
  const text = { type: 'string' }
  const options = { key: text, base: text, downloads: text, 'dry-run': { type: 'boolean' } }
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
  // A dry run checks the signatures too, with a throwaway key.
  const key = values.key === undefined ? generateKeyPairSync('ed25519').privateKey : readKey(resolve(CALLER, values.key))
  const repository = webAddress(readJson('package.json').repository)
  const github = repository?.startsWith('https://github.com/') ? `${repository}/releases/download/v${version}` : ''
  return {
    version,
    isDry,
    key,
    isSigned: values.key !== undefined,
    base: values.base === undefined ? undefined : resolve(CALLER, values.base),
    downloads: values.downloads ?? github,
    repository,
  }
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

/** Adds the repository to the manifest of a package, which npm needs to prove the origin of the package. */
const withRepository = (text, url, directory) =>
  text.includes('"repository":')
    ? text
    : text.replace(/^( *)"license": .*$/m, (line, indent) => {
        const repository = JSON.stringify({ type: 'git', url: `git+${url}.git`, directory })
        return `${line}\n${indent}"repository": ${repository},`
      })

/** Writes the version and the changelog, and removes the changesets. */
function writeRelease({ version, last, changesets, repository }) {
  const packages = globSync('packages/*/package.json', { cwd: ROOT })
  for (const file of ['package.json', 'qa/package.json', ...packages])
    edit(file, (text) => text.replace(`"version": "${last}"`, `"version": "${version}"`))
  if (repository) for (const file of packages) edit(file, (text) => withRepository(text, repository, dirname(file)))
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

/** Builds the profiles, and copies their archives and bills of materials into `folder`. */
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
}

/** Makes the container image, and writes its digest to a file. Returns the digest, or undefined without a base. */
function buildImage(version, folder, base) {
  if (base === undefined) return undefined
  const [revision, seconds] = git('log', '-1', '--format=%H %ct').split(' ')
  const build = join(ROOT, 'dist', IMAGE_PROFILE)
  const layout = join(folder, 'image')
  const image = makeImage({ base, build, folder: layout, version, revision, createdAtMs: Number(seconds) * 1000 })
  checkImage(layout, image.digest)
  writeFileSync(join(folder, `sluice-${version}-image.txt`), `${image.digest}\n`)
  console.log(`checked the image ${image.digest} for ${image.platforms.join(' and ')}`)
  return image
}

/** Writes the script that installs the release, and the signed checksums of all files. Returns the names of the files. */
function signArtefacts(folder, { key, version, downloads }) {
  const publicKey = createPublicKey(key)
  const pem = publicKey.export({ type: 'spki', format: 'pem' })
  writeFileSync(join(folder, INSTALL_SCRIPT), installScript({ version, downloads, publicKey: pem }))
  const files = [...globSync('sluice-*', { cwd: folder }), INSTALL_SCRIPT].toSorted()
  writeFileSync(join(folder, CHECKSUMS), checksums(folder, files))
  const sums = readFileSync(join(folder, CHECKSUMS))
  const signature = sign(null, sums, key)
  if (!verify(null, sums, publicKey, signature)) refuse('the signature does not verify')
  writeFileSync(join(folder, `${CHECKSUMS}.sig`), signature)
  writeFileSync(join(folder, 'release.pub.pem'), pem)
  return [...files, CHECKSUMS, `${CHECKSUMS}.sig`, 'release.pub.pem']
}

/** Writes the text of the release page, and the script that publishes everything. */
function writePublishing(folder, release) {
  const changelog = readFileSync(join(ROOT, 'CHANGELOG.md'), 'utf8')
  writeFileSync(join(folder, 'release-notes.md'), entryOf(changelog, release))
  writeFileSync(join(folder, PUBLISH_SCRIPT), publishScript(release))
  chmodSync(join(folder, PUBLISH_SCRIPT), 0o755)
}

/** Prints what a person has to do before and after. */
function printNext({ version, isDry, isSigned, image, downloads, repository }, folder) {
  const place = relative(CALLER, folder)
  const missing = [
    !isSigned && '--key was missing: everything is signed with a key that is thrown away, so publish nothing of this run',
    !repository && 'package.json has no "repository": npm cannot prove where packages come from, and the release page has no command',
    !downloads && `--downloads was missing: ${INSTALL_SCRIPT} asks for SLUICE_DOWNLOADS, the address of these files`,
    !image &&
      "--base was missing, so no image was made. 'skopeo copy --all --format oci docker://docker.io/library/node:24-bookworm-slim oci:base:node' makes one",
  ]
  for (const line of missing.filter(Boolean)) console.log(`missing: ${line}`)
  const push = isDry ? [] : ['git push --follow-tags']
  const commands = [
    ...push,
    `${place}/${PUBLISH_SCRIPT} npm     # after: npm login`,
    ...(image ? [`IMAGE=<name> ${place}/${PUBLISH_SCRIPT} image   # after: skopeo login <registry>; ${image.digest}`] : []),
    `${place}/${PUBLISH_SCRIPT} page    # after: gh auth login; the files and the text of v${version}`,
  ]
  console.log(`${isDry ? 'A release would be published with' : 'Publish it with'}:\n${commands.map((each) => `  ${each}`).join('\n')}`)
}

async function release({ version, isDry, ...given }) {
  const changesets = readChangesets(ROOT)
  const last = checkState(version, changesets)
  const folder = join(ROOT, 'dist/release', version)
  try {
    writeRelease({ version, last, changesets, repository: given.repository })
    recordSurface()
    if (!isDry) {
      git('add', '--all')
      git('commit', '--quiet', '--message', `chore(release): ${version}`)
    }
    buildArtefacts(version, folder)
    const image = buildImage(version, folder, given.base)
    const packages = await makePackages(join(folder, 'npm'), version)
    const tarballs = packages.map(({ file }) => basename(file)).toSorted()
    writeFileSync(join(folder, 'npm', CHECKSUMS), checksums(join(folder, 'npm'), tarballs))
    const files = signArtefacts(folder, { version, ...given })
    await checkArchives(version, folder)
    await checkInstallScript(version, folder)
    writePublishing(folder, { version, packages, files, image, repository: given.repository })
    copyFileSync(join(ROOT, 'CHANGELOG.md'), join(folder, 'CHANGELOG.md'))
    if (!isDry) git('tag', '--annotate', `v${version}`, '--message', `Sluice ${version}`)
    const made = isDry ? 'would be' : 'is'
    console.log(`${version} ${made} released with ${changesets.length} changes; the artefacts are in ${relative(CALLER, folder)}`)
    printNext({ version, isDry, image, ...given }, folder)
  } finally {
    if (isDry) {
      git('restore', '--staged', '--worktree', '.')
      git('clean', '--quiet', '--force', '-d', 'qa/fixtures/public-surface', 'docs/changes')
    }
  }
}

try {
  await release(readArguments())
} catch (error) {
  if (!(error instanceof Refusal)) throw error
  console.error(`release: ${error.message}`)
  process.exitCode = 1
}
