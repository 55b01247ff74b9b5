/** The `jail` backend: each command in firejail (§2.7). */
import { access, readdir, realpath, stat } from 'node:fs/promises'
import { userInfo } from 'node:os'
import { join } from 'node:path'
import { findProgram, hasProgram } from '@sluice/kit'
import {
  type ControlGroups,
  findControlGroups,
  limitedWords,
  PUBLIC_ETC,
  splitEnv,
  startWords,
  withoutCounted,
} from '@sluice/sandbox-common'
import { AppError, type Sandbox } from '@sluice/sdk'
import { jailOptions, type View } from './jail-options.ts'

const INSTALL = 'install firejail, 0.9.72 or newer (apt-get install firejail)'
const MISSING = `firejail is not installed: ${INSTALL}`
const WANTED = 'it has to be 0.9.72 or newer, and this user allowed to use it (/etc/firejail/firejail.users)'
const TRIAL = { file: '/bin/true', args: [], cwd: '/tmp', env: {} }

interface Ready extends Omit<View, 'resolver'> {
  readonly program: string
  readonly groups: ControlGroups | undefined
}

export const missingRequirement = (): string | undefined =>
  process.platform !== 'linux' ? 'it needs Linux' : hasProgram('firejail') ? undefined : MISSING

/** `dataDir` is shown to no command, wherever it lies, but for what is writable in it. */
export function jail({ dataDir }: { readonly dataDir: string }): Sandbox {
  let ready: Ready | undefined
  const sandbox: Sandbox = {
    name: 'jail',
    strength: 20,

    async probe(signal, run) {
      const program = await findProgram('firejail')
      const missing = missingRequirement()
      if (missing !== undefined || program === undefined) return { available: false, detail: missing ?? MISSING }
      const { stdout } = await run({ file: program, args: ['--version'], cwd: '/', env: {} }, signal)
      const version = stdout.split('\n')[0] || 'firejail'
      const [root, etc, groups, home] = await Promise.all([readdir('/'), publicEtc(), findControlGroups(), ownHome()])
      const isRoot = process.getuid?.() === 0
      ready = { program, root, etc, groups, home, isRoot, dataDir: await realpath(dataDir).catch(() => dataDir) }
      const command = await sandbox.wrap(TRIAL, { writable: [], network: false })
      const { exitCode, stderr } = await run(command, signal).finally(() => command.release?.(run))
      if (exitCode !== 0) {
        const detail = `${version} fails: ${stderr.trim().split('\n')[0] || exitCode}; ${WANTED}`
        return { available: false, isInstalled: true, detail }
      }
      return { available: true, detail: `${version}, ${bounds(groups)}` }
    },

    async wrap(command, policy) {
      if (!ready) throw new AppError('unavailable', 'jail has not been tried on this machine')
      const { outside, inside } = splitEnv(command.env)
      const resolver = await realpath('/etc/resolv.conf').catch(() => undefined)
      const options = jailOptions(command, policy, { ...ready, resolver }, inside)
      const group = await ready.groups?.create(policy)
      const inner = limitedWords(command, group ? withoutCounted(policy) : policy)
      const [file = '', ...args] = startWords([ready.program, ...options, '--', ...inner], { joins: group?.joins ?? [] })
      return { file, args, cwd: '/', env: outside, ...(group && { release: () => group.remove() }) }
    },
  }
  return sandbox
}

/** The home folder that firejail finds for this user, which `HOME` may differ from. A folder of somebody else is no home. */
async function ownHome(): Promise<string | undefined> {
  try {
    const home = await realpath(userInfo().homedir)
    return home !== '/' && (await stat(home)).uid === process.getuid?.() ? home : undefined
  } catch {
    return undefined
  }
}

async function publicEtc(): Promise<string[]> {
  const there = await Promise.all(
    PUBLIC_ETC.map((name) =>
      access(join('/etc', name)).then(
        () => [name],
        () => [],
      ),
    ),
  )
  return there.flat()
}

function bounds(groups: ControlGroups | undefined): string {
  if (groups) return 'processes and memory bounded by control groups'
  return process.getuid?.() === 0
    ? 'processes not bounded: root may make no control groups here'
    : 'processes and memory of each bounded by limits'
}
