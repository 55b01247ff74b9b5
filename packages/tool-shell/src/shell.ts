/** The tool `shell`: checks one command against the policy, runs it in the sandbox and returns its output. */
import { isAbsolute } from 'node:path'
import { AppError, type CallingAgent, defineTool, type Host, type SpawnResult, type Tool, unconfinedNote, whole } from '@sluice/sdk'
import * as v from 'valibot'
import { asksForArguments, checkCommand } from './check-command.ts'
import { commandRisk, readsFilesOfOthers } from './command-risk.ts'
import type { ShellConfig } from './config.ts'
import { isWithin } from './forbidden-path.ts'

const COMMAND_CHARS_MAX = 32_768
const PATH_DEFAULT = '/usr/local/bin:/usr/bin:/bin'

/** Returns the tool. A call throws `forbidden` for a command that the policy refuses, and `aborted` when its turn was aborted. */
export const shell = (host: Pick<Host, 'spawn' | 'confines' | 'sandboxChosen' | 'service'>, config: ShellConfig): Tool =>
  defineTool({
    name: 'shell',
    description:
      'Runs a command with sh in the workspace and returns its output and exit code. Pipes, && and || work; $ expansion outside single quotes, redirection to files and background jobs do not.',
    input: v.object({
      command: v.pipe(v.string(), v.minLength(1), v.maxLength(COMMAND_CHARS_MAX), v.description('The command')),
      timeout_secs: v.optional(
        v.pipe(whole(1, config.timeout_secs), v.description('Seconds after which the command is stopped')),
        config.timeout_secs,
      ),
    }),
    // Runs before the approval, so that the operator is not asked about a command that the policy refuses anyway.
    async precheck({ command }, by) {
      checkCommand(command, by, readableFolders(host, by))
      // Who may decide the call depends on the sandbox.
      await host.sandboxChosen()
    },
    alwaysAsks: ({ command }, { policy }) => asksForArguments(command, policy),
    risk: ({ command }, { workspace }) => commandRisk(command, workspace),
    // Without a sandbox a command has the rights of the daemon, and so the rights of an operator.
    decider: ({ command }, { workspace }) => (host.confines() || commandRisk(command, workspace) !== 'execute' ? 'asker' : 'operator'),
    // A command that can send data is never harmless, so it has the risk `execute`.
    egress: false,
    // Without network a command still reads what the daemon has saved from messages.
    untrusted: ({ command }, { workspace }) =>
      config.network || /attachments/i.test(command) || readsFilesOfOthers(command, workspace) ? 'shell' : undefined,
    async run({ command, timeout_secs }, context) {
      const { workspace, signal, report } = context
      const { root } = workspace
      const readable = readableFolders(host, context)
      checkCommand(command, context, readable)
      const result = await host.spawn({
        file: 'sh',
        args: ['-c', command],
        cwd: root,
        env: environment(root, config.env_passthrough),
        policy: { writable: [root], ...(readable.length > 0 && { readable }), network: config.network },
        timeoutMs: timeout_secs * 1000,
        outputBytesMax: config.output_bytes_max,
        signal,
      })
      if (signal.aborted) throw new AppError('aborted', 'The command was stopped because its turn was aborted')
      report?.({ ...(result.exitCode !== 0 && { failed: true }), data: result.stdout.trimEnd() })
      return resultText(result, timeout_secs)
    },
  })

/** Returns the folders outside of the workspace that commands may read: skills, and the attachments of the caller. The sandbox shows them read-only. */
const readableFolders = (
  host: Pick<Host, 'service'>,
  { workspace: { shown = [] } }: Pick<CallingAgent, 'workspace'>,
): readonly string[] => [...(host.service('skillFolders')?.() ?? []), ...shown]

/** Builds the environment of a command. It contains only these variables of the daemon. */
function environment(root: string, passthrough: readonly string[]): Record<string, string> {
  const { env } = process
  const passed = passthrough.map((name) => [name, env[name]] as const).filter((pair): pair is [string, string] => pair[1] !== undefined)
  // No folder of the workspace is searched for programs, because an earlier command could have put one there.
  const path = (env.PATH ?? '').split(':').filter((folder) => isAbsolute(folder) && !isWithin(folder, root))
  const own = { HOME: root, TERM: 'dumb', LANG: env.LANG ?? 'C.UTF-8' }
  return { ...own, ...Object.fromEntries(passed), PATH: path.join(':') || PATH_DEFAULT }
}

function resultText(result: SpawnResult, timeoutSecs: number): string {
  const { exitCode, signal, timedOut, stdout, stderr } = result
  const end = timedOut
    ? `[timed out after ${timeoutSecs} s; it and what it had started were ended]`
    : exitCode === null
      ? `[ended by ${signal}]`
      : `[exit code ${exitCode}]`
  const parts = [stdout.trimEnd(), stderr === '' ? '' : `[stderr]\n${stderr.trimEnd()}`, unconfinedNote(result), end]
  return parts.filter((part) => part !== '').join('\n')
}
