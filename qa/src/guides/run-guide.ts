/** Runs the commands of a guide from its first block to its last, as a reader types them on a fresh machine. */
import { execFileSync } from 'node:child_process'
import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { homedir, tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { bundle, ROOT } from '../daemons/bundle.ts'
import { debianProgram, type WantedProgram } from '../debian-program.ts'
import type { Block, Guide } from './guide.ts'
import { runInSandbox, sandboxProblem } from './sandbox.ts'

/** Programs that the runner takes from Debian's packages if they are not installed. Any other need is a program that must be installed. */
const DEBIAN_PROGRAMS: Readonly<Record<string, WantedProgram>> = {
  caddy: { packages: ['caddy'], program: 'usr/bin/caddy' },
  nginx: { packages: ['nginx'], program: 'usr/sbin/nginx' },
  promtool: { packages: ['prometheus'], program: 'usr/bin/promtool' },
  prometheus: { packages: ['prometheus'], program: 'usr/bin/prometheus' },
}

/** The release has these folders next to the program; a guide may name files in them. */
const RELEASE_FOLDERS = ['deploy', 'examples']

/** Needs other than programs. */
const isMet: Readonly<Record<string, () => boolean>> = {
  root: () => process.getuid?.() === 0,
  network: () => true,
  // Such a guide installs services or containers. The variable says that the machine is thrown away afterwards.
  machine: () => process.env.SLUICE_GUIDES_CHANGE_MACHINE === '1',
  daemon: () => true,
}

const MISSING: Readonly<Record<string, string>> = {
  root: 'needs root',
  machine: 'changes the machine; SLUICE_GUIDES_CHANGE_MACHINE=1 runs it',
}

export interface PreparedGuide {
  readonly guide: Guide
  /** Why the guide cannot run here. */
  readonly missing?: string
  /** Folders with unpacked packages. */
  readonly packages: readonly string[]
}

/** Finds or downloads what a guide needs. */
export async function prepareGuide(guide: Guide): Promise<PreparedGuide> {
  const problem = await sandboxProblem()
  if (problem !== undefined) return { guide, packages: [], missing: problem }
  const packages = new Set<string>()
  for (const need of guide.needs) {
    const check = isMet[need]
    if (check?.()) continue
    if (check) return { guide, packages: [], missing: MISSING[need] ?? `this machine has no ${need}` }
    const found = await debianProgram(DEBIAN_PROGRAMS[need] ?? { packages: [need], program: `usr/bin/${need}` })
    if ('missing' in found) return { guide, packages: [], missing: found.missing }
    if (found.root !== '/') packages.add(found.root)
  }
  return { guide, packages: [...packages] }
}

/** Runs the guide. Throws with the output of the block that failed. */
export async function runGuide({ guide, packages }: PreparedGuide, timeoutMs: number): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-guide-'))
  try {
    for (const name of ['home', 'bin', '.blocks']) await mkdir(join(folder, name))
    for (const name of RELEASE_FOLDERS)
      await cp(join(ROOT, name), join(folder, name), { recursive: true }).catch((error: NodeJS.ErrnoException) => {
        if (error.code !== 'ENOENT') throw error
      })
    const installed = installedFolder()
    await writeFile(join(folder, 'bin/sudo'), SUDO, { mode: 0o755 })
    const script = (await Promise.all(guide.blocks.map((block) => scriptOf(folder, block)))).join('')
    const started = guide.needs.includes('daemon') ? START_DAEMON : ''
    const shares = guide.needs.includes('machine') ? 'everything' : guide.needs.includes('network') ? 'network' : 'nothing'
    const env = environmentOf([join(folder, 'bin'), installed], folder, shares !== 'nothing')
    const { code, output } = await runInSandbox({ folder, script: started + script, env, packages, shares, timeoutMs })
    if (code === 0) return
    const at = await readFile(join(folder, '.at'), 'utf8').catch(() => 'the start of the daemon')
    const why = code === null ? `did not end within ${timeoutMs / 1000} s` : `ended with ${code}`
    throw new Error(`docs/guides/${guide.name}: ${at.trim()} ${why}.\n${output}`)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

let installedOnce: string | undefined

/** Installs the built full profile as its installer does, once in a process, and returns the folder of its program. */
function installedFolder(): string {
  if (installedOnce !== undefined) return installedOnce
  const build = dirname(bundle('full'))
  const prefix = join(ROOT, 'node_modules', '.cache', 'installed')
  execFileSync(process.execPath, [join(build, 'install.mjs'), '--from', build, '--prefix', prefix], { stdio: 'pipe' })
  installedOnce = join(prefix, 'bin')
  return installedOnce
}

/** The script runs as root already, or as another user with `sudo -u`. */
const SUDO = '#!/bin/sh\nif [ "$1" = -u ]; then user=$2; shift 2; exec runuser -u "$user" -- "$@"; fi\nexec "$@"\n'
/** A daemon with the default configuration, for guides about a daemon that runs. */
const START_DAEMON = 'sluice daemon >daemon.log 2>&1 &\nuntil sluice status >/dev/null 2>&1; do sleep 0.2; done\n'

/** The part of the script for one block. The blocks share one shell, so variables remain. */
async function scriptOf(folder: string, block: Block): Promise<string> {
  const path = join(folder, '.blocks', String(block.line))
  await writeFile(path, block.text)
  if (block.file !== undefined) return `mkdir -p '${dirname(block.file)}' && cp '${path}' '${block.file}'\n`
  return block.language === 'sh' ? `echo 'the block at line ${block.line}' >'${folder}/.at'\n. '${path}'\n` : ''
}

function environmentOf(programs: readonly string[], folder: string, sharesNetwork: boolean): Record<string, string> {
  const own = {
    PATH: [...programs, dirname(process.execPath), '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'].join(':'),
    HOME: join(folder, 'home'),
    LANG: 'C.UTF-8',
    NO_COLOR: '1',
  }
  if (!sharesNetwork) return own
  const inherited = Object.entries(process.env).filter(([name]) => /^(?:npm_config_\w+|https?_proxy|no_proxy)$/i.test(name))
  return { npm_config_userconfig: join(homedir(), '.npmrc'), ...(Object.fromEntries(inherited) as Record<string, string>), ...own }
}
