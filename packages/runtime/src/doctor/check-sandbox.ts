/** Checks the sandbox that commands run in, and the other backends of the build. */
import { existsSync } from 'node:fs'
import type { SandboxConfig } from '@sluice/config'
import { signalScope } from '@sluice/kit'
import { errorText, type Spawn } from '@sluice/sdk'
import { REFUSING } from '../sandbox/no-sandbox.ts'
import type { SandboxInForce } from '../sandbox/sandbox-in-force.ts'
import type { SandboxChoice } from '../sandbox/select-sandbox.ts'
import { type Check, fail, ok, warn } from './check.ts'

const TRIAL_MS_MAX = 15_000
const OUTPUT_BYTES_MAX = 4096
const SWITCH_ON = 'set enabled = true and backend = "auto" under [security.sandbox]'
const INSTALL = "install what a line names, or add another sandbox to the build; 'sluice features' lists them"

/** The settings of `[security.sandbox]` that decide whether commands are confined. */
interface SandboxSettings {
  readonly enabled: boolean
  readonly backend: SandboxConfig['backend']
  readonly required: boolean
}

export function checkSandbox({ sandbox, probes, warning }: SandboxChoice, { enabled, backend, required }: SandboxSettings): Check {
  const isOff = !enabled || backend === 'none'
  if (isOff && !required) return warn('sandbox', 'commands run without a sandbox: it is switched off', SWITCH_ON)
  const tried = probes.map(({ name, available, detail }) => `${name} ${available ? 'works' : 'does not work'}: ${detail}`)
  // The backend in use was tried last.
  if (!warning) return ok('sandbox', tried.toReversed().join('\n'))
  const isRefusing = sandbox.name === REFUSING
  // Every other warning names the backends and their problems itself.
  const lines = backend === 'auto' && (required || !isRefusing) ? [warning, ...tried] : [warning]
  return (isRefusing ? fail : warn)('sandbox', lines.join('\n'), isOff ? SWITCH_ON : INSTALL)
}

/** Empty if a command runs in the workspace: the backend may not support its name or its place. */
export async function checkInWorkspace(spawn: Spawn, root: string, section = 'agent'): Promise<Check[]> {
  if (!existsSync(root)) return []
  const failed = (why: string) => [
    fail('sandbox', `no command runs in ${root}: ${why}`, `set [${section}] workspace to another folder, or another backend`),
  ]
  using limit = signalScope([], TRIAL_MS_MAX)
  try {
    const { exitCode, stderr, sandbox } = await spawn({
      file: 'sh',
      args: ['-c', ':'],
      cwd: root,
      env: { PATH: '/usr/local/bin:/usr/bin:/bin' },
      policy: { writable: [root], network: false },
      timeoutMs: TRIAL_MS_MAX,
      outputBytesMax: OUTPUT_BYTES_MAX,
      signal: limit.signal,
    })
    return exitCode === 0 ? [] : failed(`in ${sandbox} it ended with ${exitCode} (${stderr.trim().split('\n')[0]})`)
  } catch (error) {
    return failed(errorText(error))
  }
}

/** Reports the backends of the build that are not in use. None of them is a problem. */
export async function checkOtherSandboxes(sandbox: SandboxInForce): Promise<Check[]> {
  const others = await sandbox.others()
  return others.map(({ name, available, detail }) =>
    ok(`sandbox ${name}`, `not in use; ${available ? 'it works on this machine' : 'it does not work on this machine'}: ${detail}`),
  )
}
