/** Checks the configuration: its problems and warnings, its place, and the callers and tool calls that it admits. */
import { existsSync } from 'node:fs'
import {
  type GatewayConfig,
  isLoopbackHost,
  isOpenToAll,
  type LoadedConfig,
  OPEN_TO_ALL,
  PLAIN_HTTP,
  type TomlProblem,
} from '@sluice/config'
import { AppError, errorText, type Policy } from '@sluice/sdk'
import { unknownToolNames } from '../features/operator-warnings.ts'
import type { Snapshot } from '../features/snapshot.ts'
import { type Check, fail, ok, warn } from './check.ts'
import { contains } from './check-workspace.ts'

/** Folders that every sandbox shows to commands, except for a data directory inside them. */
export const PROGRAM_FOLDERS = ['/usr', '/opt', '/nix']

/** The problems of a configuration with which the runtime did not open. */
export function configProblems(error: unknown): Check[] {
  const problems = (error instanceof AppError ? (error.fields.problems ?? []) : []) as readonly TomlProblem[]
  if (problems.length === 0) return [fail('start', errorText(error), 'the daemon would not start either')]
  return problems.map(({ file, line, message }) => fail('config', `${file}${line ? `:${line}` : ''}: ${message}`, 'correct the file'))
}

/** `version`: that of the configuration of the cluster, which replaces most of the file. */
export function checkConfig({ leftOut, warnings, plainSecrets }: LoadedConfig, configFile: string, version?: number): Check[] {
  const isPlainSecret = (warning: string) => plainSecrets.some((key) => warning.startsWith(`\`${key}\``))
  const found = [
    ...leftOut.map(({ section, feature, build }) => fail('config', `[${section}] is for ${feature}, which this build leaves out`, build)),
    ...warnings.map((warning) => warn('config', warning, isPlainSecret(warning) ? 'sluice config seal' : `see ${configFile}`)),
  ]
  if (found.length > 0) return found
  if (version !== undefined) return [ok('config', `version ${version} of the configuration of the cluster is valid with ${configFile}`)]
  return [ok('config', existsSync(configFile) ? `${configFile} is valid` : `${configFile} does not exist: all defaults`)]
}

/** Empty where commands cannot read the configuration. */
export async function checkConfigPlace(
  dataDir: string,
  configFile: string,
  programFolders: readonly string[] = PROGRAM_FOLDERS,
): Promise<Check[]> {
  if (await contains(dataDir, configFile)) return []
  const isShown = await Promise.all(programFolders.map((folder) => contains(folder, configFile)))
  if (!isShown.includes(true)) return []
  return [warn('config', `${configFile} can be read by commands, whatever the sandbox`, 'keep it in the data directory or below /etc')]
}

export function checkExposure({ host, require_pairing }: GatewayConfig): Check {
  if (isOpenToAll(host, require_pairing))
    return fail('exposure', OPEN_TO_ALL, 'set [gateway] require_pairing = true, or host = "127.0.0.1"')
  if (!isLoopbackHost(host))
    return warn('exposure', PLAIN_HTTP, 'put a reverse proxy with TLS in front, and set [gateway] host = "127.0.0.1"')
  return ok('exposure', require_pairing ? 'every caller presents a token' : 'open to this machine alone')
}

/** Checks what the model may do without a person. `section` is the table of the policy. */
export function checkPolicyLevel(
  { level, ask_after_untrusted }: Pick<Policy, 'level' | 'ask_after_untrusted'>,
  section: string,
  { channels }: Snapshot,
): Check | undefined {
  if (level !== 'full') return undefined
  const open = channels.filter(({ allow }) => allow.includes('*')).map(({ name }) => name)
  if (open.length > 0 && !ask_after_untrusted) {
    const detail = `any sender of ${open.join(', ')} can make the agent act, because no call needs an approval`
    return warn('policy', detail, `set [${section}] ask_after_untrusted = true`)
  }
  return warn('policy', 'the agent acts without asking for approval', `set [${section}] level = "supervised"`)
}

/**
 * Says which commands the shell tool takes, and why; `reasons` are the keys that make plain commands the rule. `confines` tells whether a
 * sandbox works.
 */
export function checkShell(
  { shell, level }: Policy,
  section: string,
  { reasons, confines }: { reasons: readonly string[]; confines: boolean },
): Check {
  if (level === 'readonly') return ok('shell', `runs commands that only read, because [${section}] level is "readonly"`)
  if (shell === 'script') {
    if (confines || level === 'full') return ok('shell', 'runs scripts')
    return ok('shell', "runs plain commands until a sandbox works, and scripts from then on: see 'sandbox'")
  }
  const why = reasons.length > 0 ? `, because \`${reasons.join('` and `')}\` is set` : ''
  return ok('shell', `runs plain commands, without variables, redirections and loops${why}. For scripts, set [${section}] shell = "script"`)
}

export function checkPolicy(policy: Omit<Policy, 'shell'>, snapshot: Snapshot): Check[] {
  const { level, allowed_commands } = policy
  const commands = allowed_commands.includes('*') ? 'any command' : `${allowed_commands.length} commands`
  return [
    checkPolicyLevel(policy, 'security.policy', snapshot) ?? ok('policy', `${level}; ${commands} allowed`),
    ...unknownToolNames(snapshot).map((problem) => warn('policy', problem, 'correct the name')),
  ]
}
