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
const OUTPUT_CHARS_MAX = 1024 * 1024
/** The time between two lines that show that an installation goes on. */
const PROGRESS_MS = 5000
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

/** Errors of connections whose certificate is not trusted. To try again does not help. */
const TLS_ERROR =
  /\b(?:SELF_SIGNED_CERT_IN_CHAIN|DEPTH_ZERO_SELF_SIGNED_CERT|UNABLE_TO_\w*CERT\w*|UNABLE_TO_VERIFY_LEAF_SIGNATURE|CERT_[A-Z]\w+|ERR_TLS_\w+)\b|unable to verify the first certificate|unable to get (?:local )?issuer certificate|self-signed certificate|certificate has expired/
/** The settings of npm that decide how packages are fetched. Companies have them in npm's global file, which pnpm does not read. */
const FETCH_SETTINGS = ['registry', 'proxy', 'https-proxy', 'noproxy', 'cafile', 'strict-ssl']

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

/** Returns npm's own settings for fetching packages, from all of its files, as an environment for pnpm. */
function fetchEnvironment() {
  const [command, ...first] = npmCommand()
  const result = spawnSync(command, [...first, 'config', 'list', '--json'], {
    encoding: 'utf8',
    cwd: dirname(ROOT),
    shell: WINDOWS && command === 'npm',
    env: cleanEnvironment(registrySettings()),
  })
  try {
    const settings = JSON.parse(result.stdout)
    const given = FETCH_SETTINGS.map((name) => [name, settings[name]]).filter(([, value]) => !['', null, undefined].includes(value))
    const variables = given.flatMap(([name, value]) =>
      ['npm', 'pnpm'].map((program) => [`${program}_config_${name.replaceAll('-', '_')}`, String(value)]),
    )
    const authority = process.env.NODE_EXTRA_CA_CERTS ?? settings.cafile
    return { ...Object.fromEntries(variables), ...(authority ? { NODE_EXTRA_CA_CERTS: authority } : {}) }
  } catch {
    return {} // Without npm, pnpm has settings of its own.
  }
}

/**
 * Runs a program that installs packages, and shows every few seconds that it goes on. Resolves to its exit code, its output, and the code
 * of the first certificate that was not trusted, which ends it.
 */
function runInstaller([command, ...args], options) {
  return new Promise((resolve) => {
    const child = spawn(command, args, { ...options, stdio: ['ignore', 'pipe', 'pipe'] })
    let output = ''
    let untrusted
    const take = (text) => {
      output = (output + text).slice(-OUTPUT_CHARS_MAX)
      untrusted ??= TLS_ERROR.exec(output)?.[0]
      if (untrusted) child.kill()
    }
    const began = Date.now()
    const show = () => {
      const progress = output
        .trimEnd()
        .split('\n')
        .findLast((line) => line.startsWith('Progress:'))
      const spent = `for ${Math.round((Date.now() - began) / 1000)} s`
      if (!progress) say(`still working, ${spent}`)
      else say(progress.endsWith(', done') ? `all packages are there, and some are being compiled, ${spent}` : progress)
    }
    const timer = setInterval(show, PROGRESS_MS)
    const interrupted = (signal) => {
      child.kill(signal)
      process.exit(128 + (os.signals[signal] ?? 1))
    }
    for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, interrupted)
    const end = (result) => {
      clearInterval(timer)
      for (const signal of ['SIGINT', 'SIGTERM']) process.off(signal, interrupted)
      resolve({ output, untrusted, ...result })
    }
    for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', take)
    child.on('error', ({ message }) => end({ reason: message }))
    child.on('close', (code, signal) => end({ code, reason: `exit ${code ?? signal}` }))
  })
}

/** Prints the end of what an installer has written, and the cure for a certificate that is not trusted. */
function explain({ output, untrusted }, { NODE_EXTRA_CA_CERTS: authority }) {
  const lines = output.trimEnd().split('\n')
  process.stderr.write(`${lines.slice(-OUTPUT_LINES_SHOWN).join('\n')}\n`)
  if (lines.some((line) => line.includes('ERR_PNPM_OUTDATED_LOCKFILE')))
    say("a package.json changed after pnpm-lock.yaml: run 'npm run update:lockfile', and commit both")
  if (!untrusted) return
  say(`the certificate of the registry, or of a proxy on the way to it, is not trusted (${untrusted})`)
  say(
    authority
      ? `${authority} does not have the certificate that signed it: add that certificate to the file`
      : 'if your company has a certificate of its own, name its file: npm config set cafile /path/to/company.pem, or set NODE_EXTRA_CA_CERTS to it',
  )
}

/** Installs scripts/toolchain/<name>, whose lockfile pins its content, once and atomically. Returns its folder. */
async function ensureTool(name, check) {
  const source = join(ROOT, 'scripts', 'toolchain', name)
  const lock = readFileSync(join(source, 'package-lock.json'))
  const folder = join(cacheFolder(), `${name}-${digest(lock, process.platform, process.arch)}`)
  if (existsSync(join(folder, '.complete'))) return folder
  const temporary = mkdtempSync(join(dirname(folder), `.${name}-`))
  try {
    for (const file of ['package.json', 'package-lock.json']) cpSync(join(source, file), join(temporary, file))
    say(`fetching ${name} from the npm registry (once, into ${folder})`)
    const [command, ...first] = npmCommand()
    // Node is an optional package: npm ends well without it, and tells only at this level why it could not be fetched.
    const flags = ['ci', '--ignore-scripts', '--no-audit', '--no-fund', '--prefer-offline', '--fetch-retries=1', '--loglevel=http']
    const result = await runInstaller([command, ...first, ...flags], {
      cwd: temporary,
      shell: WINDOWS && command === 'npm',
      env: cleanEnvironment({ ...registrySettings(), npm_config_update_notifier: 'false' }),
    })
    if (result.code !== 0) {
      explain(result, process.env)
      throw new Error(`npm ci failed (${result.reason})`)
    }
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

async function findNode() {
  const forced = Boolean(process.env.SVC_FORCE_TOOLCHAIN)
  if (!forced && isRecentEnough(process.versions.node)) return process.execPath
  const family = process.platform === 'darwin' && process.arch === 'arm64' ? 'node-bin' : 'node'
  const packageName = `${family}-${WINDOWS ? 'win' : process.platform}-${process.arch}`
  const program = (folder) => join(folder, 'node_modules', packageName, 'bin', WINDOWS ? 'node.exe' : 'node')
  const folder = await ensureTool('node', (temporary) => {
    if (!existsSync(program(temporary)))
      throw new Error(
        `npm did not install ${packageName}: the registry cannot be reached, or has no build for this platform. Install Node ${NODE_MIN} or newer, or try again online`,
      )
    if (!versionOf(program(temporary))) throw new Error('the fetched Node does not run on this machine')
  })
  return program(folder)
}

async function findPnpm(node) {
  if (!process.env.SVC_FORCE_TOOLCHAIN) {
    const env = cleanEnvironment({ COREPACK_ENABLE_NETWORK: '0', PATH: dirname(node) + delimiter + process.env.PATH })
    const version = versionOf('pnpm', ['--version'], env)
    if (PNPM_MAJORS.includes(Number(version.split('.')[0]))) return { folder: '', command: ['pnpm'] }
  }
  const script = (folder) => join(folder, 'node_modules', 'pnpm', 'bin', 'pnpm.mjs')
  const folder = await ensureTool('pnpm', (temporary) => {
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
  return { folder: binFolder, command: [node, script(folder)] }
}

/** Returns a digest of everything that an install depends on. An unchanged digest means that nothing must be installed. */
function installStamp(nodeVersion) {
  const packages = readdirSync(join(ROOT, 'packages')).sort()
  const manifests = packages.map((name) => join('packages', name, 'package.json')).filter((file) => existsSync(join(ROOT, file)))
  const files = ['package.json', 'pnpm-lock.yaml', 'pnpm-workspace.yaml', ...manifests]
  return digest(nodeVersion, ...files.map((file) => readFileSync(join(ROOT, file))))
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
async function installWorkspace(pnpm, env, { isFrozen }) {
  say('installing the packages of this repository from the npm registry; the first time, some are compiled')
  const [command, ...first] = pnpm.command
  const environment = { ...env, ...fetchEnvironment(), CI: 'true' }
  const result = await runInstaller(
    [
      command,
      ...first,
      'install',
      isFrozen ? '--frozen-lockfile' : '--no-frozen-lockfile',
      '--prefer-offline',
      '--reporter=append-only', // The silent reporter would hide errors too.
    ],
    { cwd: ROOT, env: environment, shell: WINDOWS && first.length === 0 },
  )
  if (result.code === 0) return
  explain(result, environment)
  fail(`pnpm install failed (${result.reason})`, result.code || 1)
}

/** Ends this process for a wrong option of a build or an installation, before anything is downloaded or built for it. */
async function checkOptions([task, ...args]) {
  if (task === 'build') (await import('./build-options.mjs')).readBuildOptions(args)
  if (task !== 'install') return
  const code = (await import('./install/install.mjs')).main(args, { onlyChecks: true })
  if (code !== 0 || args.includes('--help')) process.exit(code)
}

const [task = ''] = process.argv.slice(2)
/** Tasks that run a build, and no program that needs pnpm. */
const RUNS_BUILD = ['start', 'sluice']

await checkOptions(process.argv.slice(2))
const node = await findNode()
checkProfiles()
const isUpdate = task === 'update-lockfile'
const stampFile = join(ROOT, 'node_modules', '.bootstrap-stamp')
const stamp = () => installStamp(node === process.execPath ? process.versions.node : versionOf(node))
const isInstalled = !isUpdate && existsSync(stampFile) && readFileSync(stampFile, 'utf8') === stamp()
// The search for pnpm takes as long as the rest, so a second start goes without it.
const pnpm = isInstalled && RUNS_BUILD.includes(task) ? undefined : await findPnpm(node)
const prefix = dirname(dirname(node))
const env = cleanEnvironment({
  PATH: [dirname(node), pnpm?.folder, join(ROOT, 'node_modules', '.bin'), process.env.PATH].filter(Boolean).join(delimiter),
  // The Node package contains its headers, so native modules build offline and for the right Node.
  ...(existsSync(join(prefix, 'include', 'node', 'node_version.h')) ? { npm_config_nodedir: prefix } : {}),
})
if (!isInstalled) {
  await installWorkspace(pnpm, env, { isFrozen: !isUpdate })
  writeFileSync(stampFile, stamp())
}
if (isUpdate) process.exit()

/** Returns the user's current folder: npm and pnpm change to the root of the repository before they run a script. */
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
