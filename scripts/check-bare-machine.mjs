// Checks that the repository works on a new machine: copies the working tree, hides every compiler, and uses the Node on the PATH.
// Installs, builds the minimal profile and runs it. CI runs this script. It removes the copy.
import { spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'

const ROOT = resolve(dirname(fileURLToPath(import.meta.url)), '..')
const COMPILERS = /^(?:.*-)?(?:cc|c\+\+|gcc|g\+\+|clang|clang\+\+|c[89]9(?:-gcc)?|make|gmake|python[\d.]*)(?:-[\d.]+)?$/

const copy = mkdtempSync(join(tmpdir(), 'sluice-bare-'))
process.on('exit', () => rmSync(copy, { recursive: true, force: true }))

function run(command, args, { cwd = join(copy, 'clone'), env = process.env, stdio = 'inherit' } = {}) {
  const { status, stdout, error } = spawnSync(command, args, { cwd, env, stdio, encoding: 'utf8' })
  if (status === 0) return stdout
  console.error(`bare machine: '${[command, ...args].join(' ')}' failed (${error?.message ?? `exit ${status}`})`)
  process.exit(1)
}

const programs = join(copy, 'bin')
mkdirSync(programs)
const found = new Set()
for (const folder of (process.env.PATH ?? '').split(delimiter).filter((path) => path && !path.includes('node_modules')))
  for (const name of readdirSafely(folder)) {
    if (COMPILERS.test(name) || found.has(name)) continue
    found.add(name)
    symlinkSync(join(folder, name), join(programs, name))
  }

function readdirSafely(folder) {
  try {
    return readdirSync(folder)
  } catch {
    return []
  }
}

const files = run('git', ['ls-files', '-coz', '--exclude-standard'], { cwd: ROOT, stdio: ['ignore', 'pipe', 'inherit'] })
for (const file of files.split('\0').filter(Boolean)) {
  mkdirSync(join(copy, 'clone', dirname(file)), { recursive: true })
  cpSync(join(ROOT, file), join(copy, 'clone', file))
}

// Without this setting, pnpm would reuse packages that an earlier install compiled.
const env = { ...process.env, PATH: programs, pnpm_config_side_effects_cache: 'false' }
run('npm', ['run', '-s', 'build:minimal', '--', '--summary'], { env })
run('node', ['scripts/bootstrap.mjs', 'exec', 'node', 'dist/minimal/sluice', '--version'], { env })
