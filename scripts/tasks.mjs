// The tasks of the scripts in package.json. scripts/bootstrap.mjs runs them with the right Node, after it has installed the workspace.
import { spawn, spawnSync } from 'node:child_process'
import { existsSync, globSync, statSync } from 'node:fs'
import { constants as os } from 'node:os'
import { basename, join, resolve } from 'node:path'
import { runBeside, runTests } from './run-tests.mjs'
import { testAgain } from './test-again.mjs'

const ROOT = resolve(import.meta.dirname, '..')
const PROFILES = ['minimal', 'standard', 'full']
const [task, ...args] = process.argv.slice(2)

/** Runs a command to its end, with the output streams of this process. Returns its exit code. */
function run(command, commandArgs, env = process.env) {
  const result = spawnSync(command, commandArgs, { cwd: ROOT, stdio: ['ignore', 'inherit', 'inherit'], env })
  if (result.error) throw result.error
  return result.status ?? 128 + (os.signals[result.signal] ?? 1)
}

/** Runs a command to its end. A failure ends this process with the exit code of the command. */
function must(command, commandArgs) {
  const code = run(command, commandArgs)
  if (code !== 0) process.exit(code)
}

const bin = (name) => join(ROOT, 'node_modules', '.bin', name)

/** Returns true if the bundle is newer than every source. */
function isBuilt(profile) {
  const bundle = join(ROOT, 'dist', profile, 'sluice.mjs')
  if (!existsSync(bundle)) return false
  const builtAt = statSync(bundle).mtimeMs
  const sources = globSync(
    [
      'packages/*/src/**/*.ts',
      'packages/dashboard/page/**/*.{css,html,mjs,ts,tsx}',
      'packages/*/package.json',
      'qa/src/**/*.ts',
      'qa/package.json',
      'profiles/*.ts',
      'scripts/**/*.mjs',
      'install.*',
      'pnpm-lock.yaml',
    ],
    // The types of the API are not part of a build, and a check of types writes them.
    { cwd: ROOT, exclude: ['**/api-types.ts'] },
  )
  return sources.every((file) => statSync(join(ROOT, file)).mtimeMs <= builtAt)
}

const building = (profile) => [process.execPath, [join(ROOT, 'scripts', 'build.mjs'), profile, '--summary']]
const sayBuilding = (profile) => console.error(`[build] building the ${profile} profile; this takes some seconds`)

function buildUnlessFresh(profile) {
  if (isBuilt(profile)) return
  sayBuilding(profile)
  must(...building(profile))
}

/** Builds the profiles at the same time. A failure ends this process. */
async function buildAllUnlessFresh() {
  const stale = PROFILES.filter((profile) => !isBuilt(profile))
  stale.forEach(sayBuilding)
  const codes = await Promise.all(stale.map((profile) => runBeside(...building(profile))))
  const failed = codes.find((code) => code !== 0)
  if (failed !== undefined) process.exit(failed)
}

/** Runs a command in place of this process: forwards signals to it and ends with its exit code. */
function handOver(command, commandArgs, env = process.env, cwd = ROOT) {
  const child = spawn(command, commandArgs, { cwd, stdio: 'inherit', env })
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'])
    process.on(signal, () => (signal === 'SIGINT' && process.stdin.isTTY ? undefined : child.kill(signal)))
  child.on('exit', (code, signal) => process.exit(code ?? 128 + (os.signals[signal] ?? 1)))
}

/** Runs the daemon of the full profile. */
function start() {
  buildUnlessFresh('full')
  handOver(process.execPath, [join(ROOT, 'dist', 'full', 'sluice.mjs'), 'daemon', ...args])
}

/** Runs one command of the full profile, on machines whose own Node is too old for it. It runs in the folder of the caller. */
function sluice() {
  buildUnlessFresh('full')
  handOver(process.execPath, [join(ROOT, 'dist', 'full', 'sluice.mjs'), ...args], process.env, process.cwd())
}

/** Builds a bundle. Names of profile files are relative to the folder of the caller. */
function build() {
  handOver(process.execPath, [join(ROOT, 'scripts', 'build.mjs'), ...args], process.env, process.cwd())
}

/** Builds the chosen profile and installs it. install.sh and install.ps1 run this task in a clone. */
function install() {
  const profile = PROFILES.find((name) => args.includes(`--${name}`)) ?? 'full'
  buildUnlessFresh(profile)
  const folder = join(ROOT, 'dist', profile)
  handOver(process.execPath, [join(folder, 'install.mjs'), '--from', folder, ...args], process.env, process.cwd())
}

/** Runs the daemon from the sources, and restarts it when a source changes. */
function dev() {
  const sources = ['--watch-path=packages', '--watch-path=profiles']
  handOver(process.execPath, [...sources, join(ROOT, 'profiles', 'full.ts'), 'daemon', ...args], {
    ...process.env,
    SVC_LOG_LEVEL: process.env.SVC_LOG_LEVEL ?? 'debug',
  })
}

/** Runs the program of a script: `exec [NAME=value…] <program> [argument…]`. */
function exec() {
  const first = args.findIndex((word) => !/^\w+=/.test(word))
  const settings = args.slice(0, first).map((word) => word.split(/=(.*)/s).slice(0, 2))
  const [program, ...rest] = args.slice(first)
  handOver(program === 'node' ? process.execPath : bin(program), rest, { ...process.env, ...Object.fromEntries(settings) })
}

/** The projects of TypeScript: the packages, and the page of the dashboard, which runs in browsers. */
const TYPED = ['tsconfig.base.json', 'packages/dashboard/page/tsconfig.json']
// One checker instead of several does no work twice, and with GOGC it collects garbage less often: 22 instead of 38 s of processor time.
const TYPE_CHECKS = TYPED.map((project) => [bin('tsc'), ['-p', project, '--singleThreaded']])
const API_TYPES = [process.execPath, [join(ROOT, 'scripts', 'dashboard-types.mjs')]]
const CHECKS = [API_TYPES, [bin('biome'), ['check', '--error-on-warnings', '.']], ...TYPE_CHECKS]
const CHECK_ENV = { ...process.env, GOGC: '400' }

function types() {
  must(...API_TYPES)
  for (const project of TYPED) must(bin('tsc'), ['-p', project])
}

/** Checks lint and types, all of them also after a failure. */
function check() {
  const failed = CHECKS.filter(([command, commandArgs]) => run(command, commandArgs, CHECK_ENV) !== 0)
  for (const [command, commandArgs] of failed) console.error(`[check] FAILED: ${[basename(command), ...commandArgs].join(' ')}`)
  process.exitCode = failed.length === 0 ? 0 : 1
}

/** Builds the profiles and runs every test once. The last line counts the tests. With arguments, only the tests of these files run. */
async function test() {
  if (args.length === 0) await buildAllUnlessFresh()
  const { code, report } = await runTests(args)
  process.exitCode = code
  console.log(`${report.passed} passed, ${Math.max(report.failed, code === 0 ? 0 : 1)} failed, ${report.skipped} skipped`)
}

/** Runs tests many times; see scripts/test-again.mjs. */
async function again() {
  process.exitCode = await testAgain(args, { build: buildAllUnlessFresh })
}

/** Runs the slow suites, those in files that end with `.slow.test.ts`. */
function slow() {
  for (const profile of PROFILES) buildUnlessFresh(profile)
  process.exitCode = run(bin('vitest'), ['run', '--config', 'vitest.workspace.ts', ...args], { ...process.env, SLUICE_SLOW: '1' })
}

/** Runs the tests of the dashboard in a real browser, against a bundle of the present sources. */
function browser() {
  buildUnlessFresh('standard')
  process.exitCode = run(bin('vitest'), ['run', '--config', 'vitest.workspace.ts', ...args], { ...process.env, SLUICE_BROWSER: '1' })
}

const tasks = { start, sluice, build, profiles: buildAllUnlessFresh, install, dev, exec, types, check, test, again, slow, browser }
if (!Object.hasOwn(tasks, task)) {
  console.error(`usage: node scripts/tasks.mjs ${Object.keys(tasks).join('|')}`)
  process.exit(2)
}
await tasks[task]()
