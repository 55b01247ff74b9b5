#!/usr/bin/env node
// The entry of every script in package.json. Runs with any Node from version 18 and with nothing installed: finds Node 24 or newer
// and pnpm, or downloads them once from the npm registry; installs the workspace from the frozen lockfile when something changed;
// then runs scripts/tasks.mjs with the right Node, in the folder of the caller.
import { spawn, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { homedir, constants as os } from 'node:os'
import { basename, delimiter, dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'

const ROOT = resolve(dirname(fileURLToPath(import.meta.url)), '..')
/** The first version whose SQLite binds numbered parameters. */
const NODE_MIN = '24.7'
const PNPM_MAJORS = [11, 12]
const OUTPUT_BYTES_MAX = 64 * 1024 * 1024
/** The number of last lines shown of a failed install: the reason is at the end of its output. */
const OUTPUT_LINES_SHOWN = 20
const WINDOWS = process.platform === 'win32'

const say = (message) => process.stderr.write(`[bootstrap] ${message}\n`)
const fail = (message, code = 1) => {
  say(message)
  process.exit(code)
}
const readJson = (file) => JSON.parse(readFileSync(file, 'utf8'))
const digest = (...parts) => {
  const hash = createHash('sha256')
  for (const part of parts) hash.update(part).update('\0')
  return hash.digest('hex').slice(0, 20)
}

/** Returns the environment without npm's settings: an inherited `nodedir` would build native modules for the wrong Node. */
function cleanEnvironment(extra = {}) {
  const kept = Object.entries(process.env).filter(([name]) => !/^npm_/i.test(name) && name !== 'INIT_CWD')
  return { ...Object.fromEntries(kept), ...extra }
}

/** Returns only the npm settings that decide where packages come from. */
function registrySettings() {
  const wanted = /^npm_config_(cache|registry|userconfig|globalconfig|proxy|https_proxy|noproxy|cafile|ca|strict_ssl|offline)$/i
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => wanted.test(name)))
}

/** Whether another user owns a folder, such as the home of the user who called sudo: root would run programs that this user can replace. */
const isForeign = (folder) => ![undefined, process.getuid?.()].includes(statSync(folder, { throwIfNoEntry: false })?.uid)

function cacheFolder() {
  const { XDG_CACHE_HOME, SVC_TOOLCHAIN_DIR } = process.env
  const candidates = [
    SVC_TOOLCHAIN_DIR,
    XDG_CACHE_HOME && !isForeign(XDG_CACHE_HOME) && join(XDG_CACHE_HOME, 'sluice'),
    homedir() && !isForeign(homedir()) && join(homedir(), '.cache', 'sluice'),
    join(ROOT, '.cache'),
  ]
  for (const folder of candidates.filter(Boolean)) {
    try {
      mkdirSync(folder, { recursive: true })
      rmSync(mkdtempSync(join(folder, 'try-')), { recursive: true })
      return folder
    } catch {
      // Not writable: try the next candidate.
    }
  }
  return fail('no writable cache folder; set SVC_TOOLCHAIN_DIR to one')
}

/** Returns the command of npm, as a script of this Node if it is found: `npm` on the PATH may belong to another Node. */
function npmCommand() {
  const running = process.env.npm_execpath // The path of pnpm or yarn if one of them runs this script.
  if (running && basename(running) === 'npm-cli.js') return [process.execPath, running]
  const prefix = dirname(process.execPath)
  const script = [join(prefix, '..', 'lib'), prefix]
    .map((folder) => join(folder, 'node_modules', 'npm', 'bin', 'npm-cli.js'))
    .find((file) => existsSync(file))
  return script ? [process.execPath, script] : ['npm']
}

/** Installs scripts/toolchain/<name>, whose lockfile pins its content, once and atomically. Returns its folder. */
function ensureTool(name, check) {
  const source = join(ROOT, 'scripts', 'toolchain', name)
  const lock = readFileSync(join(source, 'package-lock.json'))
  const folder = join(cacheFolder(), `${name}-${digest(lock, process.platform, process.arch)}`)
  if (existsSync(join(folder, '.complete'))) return folder
  const temporary = mkdtempSync(join(dirname(folder), `.${name}-`))
  try {
    for (const file of ['package.json', 'package-lock.json']) cpSync(join(source, file), join(temporary, file))
    say(`fetching ${name} from the npm registry (once, into ${folder})`)
    const [command, ...first] = npmCommand()
    const flags = ['ci', '--ignore-scripts', '--no-audit', '--no-fund', '--prefer-offline', '--fetch-retries=1', '--loglevel=error']
    const result = spawnSync(command, [...first, ...flags], {
      cwd: temporary,
      stdio: ['ignore', 2, 2],
      shell: WINDOWS && command === 'npm',
      env: cleanEnvironment({ ...registrySettings(), npm_config_update_notifier: 'false' }),
    })
    if (result.status !== 0) throw new Error(`npm ci failed (${result.error?.message ?? `exit ${result.status}`})`)
    check(temporary)
    writeFileSync(join(temporary, '.complete'), '')
    try {
      renameSync(temporary, folder)
    } catch (error) {
      if (!existsSync(join(folder, '.complete'))) throw error
      rmSync(temporary, { recursive: true, force: true }) // Another process installed it first.
    }
    return folder
  } catch (error) {
    rmSync(temporary, { recursive: true, force: true })
    return fail(`cannot fetch ${name}: ${error.message}`)
  }
}

function versionOf(program, args = ['--version'], env = cleanEnvironment()) {
  // Runs outside the repository, so that no setting of the project selects another version.
  const result = spawnSync(program, args, {
    encoding: 'utf8',
    timeout: 10_000,
    env,
    cwd: dirname(ROOT),
    shell: WINDOWS && program === 'pnpm',
  })
  return result.status === 0 ? result.stdout.trim().replace(/^v/, '') : ''
}

function isRecentEnough(version) {
  const [major, minor] = version.split('.').map(Number)
  const [majorMin, minorMin] = NODE_MIN.split('.').map(Number)
  return major > majorMin || (major === majorMin && minor >= minorMin)
}

function findNode() {
  const forced = Boolean(process.env.SVC_FORCE_TOOLCHAIN)
  if (!forced && isRecentEnough(process.versions.node)) return process.execPath
  const family = process.platform === 'darwin' && process.arch === 'arm64' ? 'node-bin' : 'node'
  const packageName = `${family}-${WINDOWS ? 'win' : process.platform}-${process.arch}`
  const program = (folder) => join(folder, 'node_modules', packageName, 'bin', WINDOWS ? 'node.exe' : 'node')
  const folder = ensureTool('node', (temporary) => {
    if (!existsSync(program(temporary)))
      throw new Error(
        `npm did not install ${packageName}: the registry cannot be reached, or has no build for this platform. Install Node ${NODE_MIN} or newer, or try again online`,
      )
    if (!versionOf(program(temporary))) throw new Error('the fetched Node does not run on this machine')
  })
  return program(folder)
}

function findPnpm(node) {
  if (!process.env.SVC_FORCE_TOOLCHAIN) {
    const env = cleanEnvironment({ COREPACK_ENABLE_NETWORK: '0', PATH: dirname(node) + delimiter + process.env.PATH })
    const version = versionOf('pnpm', ['--version'], env)
    if (PNPM_MAJORS.includes(Number(version.split('.')[0]))) return { folder: '', command: ['pnpm'], version }
  }
  const script = (folder) => join(folder, 'node_modules', 'pnpm', 'bin', 'pnpm.mjs')
  const folder = ensureTool('pnpm', (temporary) => {
    if (!versionOf(node, [script(temporary), '--version'])) throw new Error('the fetched pnpm does not run on this machine')
  })
  const binFolder = join(folder, 'bin')
  if (!existsSync(join(binFolder, 'pnpm'))) {
    mkdirSync(binFolder, { recursive: true })
    const temporary = join(binFolder, `.pnpm-${process.pid}`)
    writeFileSync(temporary, `#!/bin/sh\nexec node "${script(folder)}" "$@"\n`, { mode: 0o755 })
    renameSync(temporary, join(binFolder, 'pnpm'))
    writeFileSync(join(binFolder, 'pnpm.cmd'), `@node "${script(folder)}" %*\r\n`)
  }
  const { version } = readJson(join(folder, 'node_modules', 'pnpm', 'package.json'))
  return { folder: binFolder, command: [node, script(folder)], version }
}

/** Returns a digest of everything that an install depends on. An unchanged digest means that nothing must be installed. */
function installStamp(nodeVersion, pnpmVersion) {
  const packages = readdirSync(join(ROOT, 'packages')).sort()
  const manifests = packages.map((name) => join('packages', name, 'package.json')).filter((file) => existsSync(join(ROOT, file)))
  const files = ['package.json', 'pnpm-lock.yaml', 'pnpm-workspace.yaml', ...manifests]
  return digest(nodeVersion, pnpmVersion, ...files.map((file) => readFileSync(join(ROOT, file))))
}

/** Ends this process if a profile imports a package of the workspace that the root does not have: nothing could resolve it. */
function checkProfiles() {
  const { devDependencies = {} } = readJson(join(ROOT, 'package.json'))
  const folder = join(ROOT, 'profiles')
  for (const file of existsSync(folder) ? readdirSync(folder).sort() : [])
    for (const [, name] of readFileSync(join(folder, file), 'utf8').matchAll(/ from '(@sluice\/[\w-]+)/g))
      if (!Object.hasOwn(devDependencies, name))
        fail(
          `profiles/${file} imports ${name}, which the root package.json lacks: add "${name}": "workspace:*" to its devDependencies, and run 'npm run update:lockfile'`,
        )
}

/** With `isFrozen` false, the lockfile follows the package.json files. */
function installWorkspace(pnpm, env, { stamp, isFrozen = true }) {
  const stampFile = join(ROOT, 'node_modules', '.bootstrap-stamp')
  if (isFrozen && existsSync(stampFile) && readFileSync(stampFile, 'utf8') === stamp()) return
  say('installing the packages of this repository from the npm registry; the first time some are compiled, which takes up to a minute')
  const [command, ...first] = pnpm.command
  const result = spawnSync(
    command,
    [...first, 'install', isFrozen ? '--frozen-lockfile' : '--no-frozen-lockfile', '--prefer-offline', '--reporter=append-only'],
    {
      cwd: ROOT,
      env: { ...env, CI: 'true' },
      stdio: ['ignore', 'pipe', 'pipe'],
      encoding: 'utf8',
      maxBuffer: OUTPUT_BYTES_MAX,
      shell: WINDOWS && first.length === 0,
    },
  )
  if (result.status !== 0) {
    // The output is captured because pnpm's silent reporter would hide errors too.
    const lines = `${result.stdout ?? ''}${result.stderr ?? ''}`.trimEnd().split('\n')
    process.stderr.write(`${lines.slice(-OUTPUT_LINES_SHOWN).join('\n')}\n`)
    if (lines.some((line) => line.includes('ERR_PNPM_OUTDATED_LOCKFILE')))
      say("a package.json changed after pnpm-lock.yaml: run 'npm run update:lockfile', and commit both")
    fail(`pnpm install failed (${result.error?.message ?? `exit ${result.status}`})`, result.status || 1)
  }
  writeFileSync(stampFile, stamp())
}

/** Ends this process for a wrong option of a build or an installation, before anything is downloaded or built for it. */
async function checkOptions([task, ...args]) {
  if (task === 'build') (await import('./build-options.mjs')).readBuildOptions(args)
  if (task !== 'install') return
  const code = (await import('./install/install.mjs')).main(args, { onlyChecks: true })
  if (code !== 0 || args.includes('--help')) process.exit(code)
}

await checkOptions(process.argv.slice(2))
const node = findNode()
const pnpm = findPnpm(node)
const prefix = dirname(dirname(node))
const env = cleanEnvironment({
  PATH: [dirname(node), pnpm.folder, join(ROOT, 'node_modules', '.bin'), process.env.PATH].filter(Boolean).join(delimiter),
  // The Node package contains its headers, so native modules build offline and for the right Node.
  ...(existsSync(join(prefix, 'include', 'node', 'node_version.h')) ? { npm_config_nodedir: prefix } : {}),
})
checkProfiles()
const isUpdate = process.argv[2] === 'update-lockfile'
installWorkspace(pnpm, env, { stamp: () => installStamp(versionOf(node), pnpm.version), isFrozen: !isUpdate })
if (isUpdate) process.exit()

/** Returns the folder that the user stands in: npm and pnpm change to the root of the repository before they run a script. */
function callerFolder() {
  const folder = process.env.npm_lifecycle_event && process.cwd() === ROOT ? process.env.INIT_CWD : undefined
  return folder && existsSync(folder) ? folder : process.cwd()
}

const tasks = join(ROOT, 'scripts', 'tasks.mjs')
const child = spawn(node, [tasks, ...process.argv.slice(2)], { cwd: callerFolder(), env, stdio: 'inherit' })
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
  // A terminal sends SIGINT to the child too.
  process.on(signal, () => (signal === 'SIGINT' && process.stdin.isTTY ? undefined : child.kill(signal)))
}
if (process.env.npm_lifecycle_event && !WINDOWS) {
  // npm runs scripts in a shell that ends on SIGTERM without forwarding it. Stop the child once the shell has gone.
  const parent = process.ppid
  setInterval(() => process.ppid !== parent && child.kill('SIGTERM'), 500).unref()
}
child.on('error', (error) => fail(error.message))
child.on('exit', (code, signal) => process.exit(code ?? 128 + (os.signals[signal] ?? 1)))
