#!/usr/bin/env node
// Installs, upgrades and removes a build of Sluice. install.sh and install.ps1 find a suitable Node and run this file with it. A build
// contains a copy, so the file imports nothing but Node's own modules and runs with every Node from version 18.
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  chmodSync,
  copyFileSync,
  cpSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { homedir } from 'node:os'
import { delimiter, dirname, join, resolve, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'

const USAGE = `usage: install [--minimal|--standard|--full] [--user|--system] [--prefix <folder>]
       install --uninstall [--user|--system] [--prefix <folder>]

  --minimal, --standard, --full  the profile; default: that of the archive, or full in a clone
  --user                         for the calling user, in ~/.local (default for users)
  --system                       for every user, in /usr/local (default for root)
  --prefix <folder>              in another folder
  --uninstall                    removes the program; configuration and data stay
`
const PROFILES = ['minimal', 'standard', 'full']
const FLAGS = [...PROFILES, 'user', 'system', 'uninstall', 'help'].map((name) => [name, { type: 'boolean' }])
export const OPTIONS = { ...Object.fromEntries(FLAGS), prefix: { type: 'string' }, from: { type: 'string' } }
const CHECKSUMS = 'SHA256SUMS'
const WORD_CHARS_MAX = 32
const PROGRAM_MODE = 0o755
const FILE_MODE = 0o644
/** Marks the launcher as a file that the installer may replace and remove. */
const MARK = 'Written by the installer of Sluice.'
/** Folders of users, which other users cannot read. */
const HOMES = ['/home', '/root', '/Users']

class Failure extends Error {}

const say = (text) => process.stdout.write(`${text}\n`)
const readJson = (file) => JSON.parse(readFileSync(file, 'utf8'))
const sha256 = (data) => createHash('sha256').update(data).digest('hex')
const isThere = (path) => lstatSync(path, { throwIfNoEntry: false }) !== undefined

/** The folders of an installation. On Windows it has one folder of its own, and no manual page and completions. */
export function placesOf({ prefix, isSystem, platform = process.platform, env = process.env, home = homedir() }) {
  if (platform === 'win32') {
    const base = isSystem ? env.ProgramFiles : join(env.LOCALAPPDATA ?? join(home, 'AppData', 'Local'), 'Programs')
    const root = prefix ?? join(base, 'sluice')
    return { prefix: root, library: join(root, 'lib'), program: join(root, 'bin', 'sluice.cmd'), links: {} }
  }
  const root = prefix ?? (isSystem ? '/usr/local' : join(home, '.local'))
  return {
    prefix: root,
    library: join(root, 'lib', 'sluice'),
    program: join(root, 'bin', 'sluice'),
    links: {
      'sluice.1': join(root, 'share/man/man1/sluice.1'),
      'sluice.bash': join(root, 'share/bash-completion/completions/sluice'),
      'sluice.zsh': join(root, 'share/zsh/site-functions/_sluice'),
      'sluice.fish': join(root, 'share/fish/vendor_completions.d/sluice.fish'),
    },
  }
}

/** Returns the names and hashes of the files of a build, once the hash of each file is right. Throws when one is not. */
export function verifiedFiles(folder) {
  const list = join(folder, CHECKSUMS)
  if (!existsSync(list)) throw new Failure(`${folder} is not a build of Sluice: it has no ${CHECKSUMS}`)
  const text = readFileSync(list, 'utf8')
  const files = text
    .trim()
    .split('\n')
    .map((line) => {
      const [, hash, name] = /^([0-9a-f]{64}) {2}([\w-][\w.-]*(?:\/[\w-][\w.-]*)*)$/.exec(line) ?? []
      if (name === undefined) throw new Failure(`${list} has a line that is not a checksum: ${line}`)
      if (!existsSync(join(folder, name))) throw new Failure(`${join(folder, name)} is missing; unpack the archive again`)
      if (sha256(readFileSync(join(folder, name))) !== hash)
        throw new Failure(
          `${join(folder, name)} is damaged or was changed: its SHA-256 is not the one in ${CHECKSUMS}; unpack the archive again`,
        )
      return name
    })
  return { names: [...files, CHECKSUMS], hash: sha256(text) }
}

/** Makes the folders of a path in `base`, which every user may enter. */
function makeFolders(base, path) {
  if (path === '.') return
  makeFolders(base, dirname(path))
  mkdirSync(join(base, path), { recursive: true })
  chmodSync(join(base, path), PROGRAM_MODE)
}

/** Copies a verified build into the folder of builds under a name of its own, in one step. Returns its folder. */
function placeBuild(from, library, { version, profile }) {
  const { names, hash } = verifiedFiles(from)
  const builds = join(library, 'builds')
  const target = join(builds, `${version}-${profile}-${hash.slice(0, 12)}`)
  if (existsSync(target)) {
    if (isIntact(target)) return target
    rmSync(target, { recursive: true, force: true })
  }
  mkdirSync(builds, { recursive: true })
  const temporary = mkdtempSync(join(builds, '.new-'))
  try {
    for (const name of names) {
      makeFolders(temporary, dirname(name))
      copyFileSync(join(from, name), join(temporary, name))
      chmodSync(join(temporary, name), /^(?:sluice|install\.sh)$/.test(name) ? PROGRAM_MODE : FILE_MODE)
    }
    verifiedFiles(temporary)
    chmodSync(temporary, PROGRAM_MODE)
    renameSync(temporary, target)
  } finally {
    rmSync(temporary, { recursive: true, force: true })
  }
  return target
}

function isIntact(folder) {
  try {
    verifiedFiles(folder)
    return true
  } catch {
    return false
  }
}

/** Whether an installation needs a copy of this Node: one that was fetched for the installer, or that other users cannot read. */
export const needsCopy = (program, isSystem) =>
  program.split(sep).includes('node_modules') || (isSystem && HOMES.some((folder) => program.startsWith(`${folder}/`)))

/** Returns the Node that will run Sluice. */
function placeNode(library, isSystem) {
  if (!needsCopy(process.execPath, isSystem)) return process.execPath
  const windows = process.platform === 'win32'
  const folder = join(library, 'node')
  const program = windows ? join(folder, 'node.exe') : join(folder, 'bin', 'node')
  if (existsSync(program) && spawnSync(program, ['--version'], { encoding: 'utf8' }).stdout?.trim() === process.version) return program
  const source = windows ? dirname(process.execPath) : dirname(dirname(process.execPath))
  const temporary = mkdtempSync(join(library, '.node-'))
  try {
    const copy = windows ? join(temporary, 'node.exe') : join(temporary, 'bin', 'node')
    mkdirSync(dirname(copy), { recursive: true })
    copyFileSync(process.execPath, copy)
    chmodSync(copy, PROGRAM_MODE)
    // Native packages are compiled with these headers.
    for (const name of ['include', 'LICENSE'])
      if (existsSync(join(source, name))) cpSync(join(source, name), join(temporary, name), { recursive: true })
    chmodSync(temporary, PROGRAM_MODE)
    if (existsSync(folder)) renameSync(folder, join(temporary, 'replaced'))
    renameSync(temporary, folder)
    rmSync(join(folder, 'replaced'), { recursive: true, force: true })
  } finally {
    rmSync(temporary, { recursive: true, force: true })
  }
  return program
}

/** Returns the text of the program that a shell finds on its PATH. */
export const launcherText = (node, entry, platform = process.platform) =>
  platform === 'win32'
    ? `@rem ${MARK}\r\n@"${node}" "${entry}" %*\r\n`
    : `#!/bin/sh\n# ${MARK}\nexec ${quoted(node)} ${quoted(entry)} "$@"\n`

const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`

/** Writes a file in one step. */
function writeWhole(file, text, mode) {
  mkdirSync(dirname(file), { recursive: true })
  const temporary = `${file}.${process.pid}.new`
  writeFileSync(temporary, text, { mode })
  chmodSync(temporary, mode)
  renameSync(temporary, file)
}

/** Makes a symbolic link in one step. */
function linkWhole(target, path) {
  mkdirSync(dirname(path), { recursive: true })
  const temporary = `${path}.${process.pid}.new`
  rmSync(temporary, { force: true })
  symlinkSync(target, temporary)
  renameSync(temporary, path)
}

/** Throws when a path that the installation needs belongs to another program. */
function requireOwn({ program, links, library }) {
  const isOurs = (path) => {
    const stat = lstatSync(path)
    if (stat.isSymbolicLink()) return resolve(dirname(path), readlinkSync(path)).startsWith(library + sep)
    return stat.isFile() && path === program && readFileSync(path, 'utf8').includes(MARK)
  }
  for (const path of [program, ...Object.values(links)])
    if (isThere(path) && !isOurs(path))
      throw new Failure(`${path} was not made by this installer; remove it, or choose another place with --prefix`)
}

/** Brings the native packages of the earlier build to the new one: by copying where both lock the same versions, else with npm. */
function bringNative(previous, build, node) {
  const modules = previous && join(previous, 'node_modules')
  if (!modules || previous === build || !existsSync(modules) || existsSync(join(build, 'node_modules'))) return
  const lock = 'npm-shrinkwrap.json'
  if (readFileSync(join(previous, lock), 'utf8') === readFileSync(join(build, lock), 'utf8')) {
    const temporary = mkdtempSync(join(build, '.native-'))
    cpSync(modules, join(temporary, 'm'), { recursive: true, verbatimSymlinks: true })
    renameSync(join(temporary, 'm'), join(build, 'node_modules'))
    rmSync(temporary, { recursive: true, force: true })
    return
  }
  const { peerDependencies = {} } = readJson(join(build, 'package.json'))
  const names = Object.keys(peerDependencies).filter((name) => existsSync(join(modules, name)))
  if (names.length === 0) return
  const words = ['native', 'install', ...names]
  const { status } = spawnSync(node, [join(build, 'sluice'), ...words], { stdio: 'inherit' })
  if (status !== 0) say(`The native packages of the earlier build were not all installed. To try again: sluice ${words.join(' ')}`)
}

/** Removes the builds that are neither in use nor the one before: a daemon that was not restarted still loads parts of that one. */
function removeOldBuilds(library, kept) {
  const builds = join(library, 'builds')
  for (const name of readdirSync(builds))
    if (!kept.includes(join(builds, name))) rmSync(join(builds, name), { recursive: true, force: true })
}

const readState = (library) => (existsSync(join(library, 'installed.json')) ? readJson(join(library, 'installed.json')) : undefined)

function install(from, mode, places, isSystem) {
  const { library, program, links, prefix } = places
  const { version } = readJson(join(from, 'package.json'))
  const { profile } = readJson(join(from, 'bundle-report.json'))
  if (mode !== undefined && mode !== profile)
    throw new Failure(`this archive has the profile ${profile}; --${mode} needs a clone or another archive`)
  requireOwn(places)
  process.umask(0o022) // Every user may run the program, also where new files are private by default.
  const before = readState(library)
  const build = placeBuild(from, library, { version, profile })
  const node = placeNode(library, isSystem)
  const previous = before?.build && existsSync(before.build) ? before.build : undefined
  bringNative(previous, build, node)
  const windows = process.platform === 'win32'
  const current = windows ? build : join(library, 'current')
  if (!windows) linkWhole(build, current)
  for (const [name, path] of Object.entries(links)) linkWhole(join(current, name), path)
  writeWhole(program, launcherText(node, join(current, 'sluice')), PROGRAM_MODE)
  const earlier = previous === build ? before.previous : previous
  writeWhole(
    join(library, 'installed.json'),
    `${JSON.stringify({ version, profile, build, previous: earlier, node }, null, 2)}\n`,
    FILE_MODE,
  )
  removeOldBuilds(library, [build, earlier])
  const { status, stderr } = spawnSync(program, ['--version'], { encoding: 'utf8', shell: windows })
  if (status !== 0) throw new Failure(`the installed program does not start: ${stderr}`)
  say(resultText({ version, profile, program, build, previous }))
  if (previous && previous !== build) say('Restart the daemon if it is running.')
  if (!(process.env.PATH ?? '').split(delimiter).includes(dirname(program)) && !windows)
    say(`${dirname(program)} is not on your PATH. Add it: export PATH="${join(prefix, 'bin')}:$PATH"`)
}

function resultText({ version, profile, program, build, previous }) {
  const what = `Sluice ${version} (${profile})`
  if (previous === build) return `${what} is already installed: ${program}`
  return `${previous ? 'Upgraded to' : 'Installed'} ${what}: ${program}`
}

function uninstall(places) {
  const { library, program, links } = places
  if (!existsSync(library)) {
    say(`Sluice is not installed in ${places.prefix}.`)
    return
  }
  requireOwn(places)
  for (const path of [program, ...Object.values(links)]) rmSync(path, { force: true })
  rmSync(library, { recursive: true, force: true })
  say(`Removed Sluice from ${places.prefix}. Configuration and data, such as ~/.sluice, were not touched.`)
}

/** The smallest number of inserted, deleted and replaced letters between two words. */
function edits(a, b) {
  let before = Array.from({ length: b.length + 1 }, (_, column) => column)
  for (const letter of a) {
    const now = [before[0] + 1]
    for (let column = 1; column <= b.length; column++)
      now.push(Math.min(now[column - 1] + 1, before[column] + 1, before[column - 1] + (letter === b[column - 1] ? 0 : 1)))
    before = now
  }
  return before[b.length]
}

/** Returns the name that a wrong word begins or resembles most; undefined when none resembles it. */
export function nearestName(word, names) {
  const wrong = word.toLowerCase().slice(0, WORD_CHARS_MAX)
  const [near] = names
    .map((name) => ({ name, distance: wrong !== '' && name.startsWith(wrong) ? 0 : edits(wrong, name) }))
    .filter(({ name, distance }) => distance <= Math.floor(name.length / 2))
    .sort((a, b) => a.distance - b.distance)
  return near?.name
}

/** As `parseArgs` of Node. The message of an error names an unknown word and the nearest option. */
export function parseOptions({ args, options, allowPositionals = false }) {
  try {
    return parseArgs({ args, options, allowPositionals })
  } catch (error) {
    if (!/^ERR_PARSE_ARGS_UNKNOWN_OPTION$|^ERR_PARSE_ARGS_UNEXPECTED_POSITIONAL$/.test(error.code)) throw error
    const [, word = ''] = /'(-{0,2}[^' ]*)/.exec(error.message) ?? []
    const near = nearestName(word.replace(/^-+|=.*$/gs, ''), Object.keys(options))
    throw Object.assign(new Error(`unknown option '${word}'${near === undefined ? '' : `; did you mean --${near}?`}`), { code: error.code })
  }
}

function readArguments(argv) {
  const { values } = parseOptions({ args: argv, options: OPTIONS })
  const modes = PROFILES.filter((name) => values[name])
  if (modes.length > 1) throw new Failure(`choose one of ${modes.map((name) => `--${name}`).join(' and ')}`)
  if (values.user && values.system) throw new Failure('choose one of --user and --system')
  return { ...values, mode: modes[0] }
}

/** Runs the installer, or only checks its options. Returns the exit code. */
export function main(argv, { onlyChecks = false } = {}) {
  try {
    const { mode, user, system, uninstall: removes, help, prefix, from } = readArguments(argv)
    if (help) {
      process.stdout.write(USAGE)
      return 0
    }
    if (onlyChecks) return 0
    const isSystem = system ?? (user ? false : process.getuid?.() === 0)
    const places = placesOf({ prefix: prefix && resolve(prefix), isSystem })
    if (removes) uninstall(places)
    else install(resolve(from ?? dirname(fileURLToPath(import.meta.url))), mode, places, isSystem)
    return 0
  } catch (error) {
    if (error instanceof Failure) process.stderr.write(`install: ${error.message}\n`)
    else if (error.code?.startsWith('ERR_PARSE_ARGS')) process.stderr.write(`install: ${error.message}\n${USAGE}`)
    else if (['EACCES', 'EPERM', 'EROFS'].includes(error.code))
      process.stderr.write(`install: ${error.path} cannot be written; run the installer with sudo, or for your user alone with --user\n`)
    else throw error
    return error.code?.startsWith('ERR_PARSE_ARGS') ? 2 : 1
  }
}

if (process.argv[1] && resolve(process.argv[1]) === fileURLToPath(import.meta.url)) process.exitCode = main(process.argv.slice(2))
