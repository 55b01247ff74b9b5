/** The tool `shell`: checks one command against the policy, runs it in the sandbox and returns its output. */
import { isAbsolute } from 'node:path'
import { endsWithin, hasProgram, isWithin } from '@sluice/kit'
import {
  AppError,
  type CallingAgent,
  defineTool,
  type Host,
  type Policy,
  type SpawnRequest,
  type Standing,
  type Tool,
  type ToolContext,
  type Workspace,
  whole,
} from '@sluice/sdk'
import * as v from 'valibot'
import { type BackgroundJobs, Job } from './background.ts'
import { asksForArguments, checkCommand } from './check-command.ts'
import { checkScript, mayGiveScripts, plainReason, takesScripts } from './check-script.ts'
import { commandRisk, readsFilesOfOthers } from './command-risk.ts'
import type { ShellConfig } from './config.ts'
import { joined, resultText } from './result-text.ts'

const COMMAND_CHARS_MAX = 32_768
const PATH_DEFAULT = '/usr/local/bin:/usr/bin:/bin'

type ShellHost = Pick<Host, 'spawn' | 'confines' | 'sandboxChosen' | 'service' | 'clock'>

/** The tool, and what it is asked by the tools for its commands in the background. */
export interface Shell {
  readonly tool: Tool
  /** Returns the source of text of others in the output of a command. */
  source(command: string, workspace: Workspace): string | undefined
}

/** Returns the tool. A call throws `forbidden` for a command that the policy refuses, and `aborted` when its turn was aborted. */
export function shell(host: ShellHost, config: ShellConfig, jobs: BackgroundJobs): Shell {
  const { timeout_secs: waitSecsMax, background_secs } = config
  const takes = (policy: Policy) => takesScripts(policy, host.confines())
  // Without network a command still reads what the daemon has saved from messages.
  const source = (command: string, workspace: Workspace) =>
    config.network || /attachments/i.test(command) || readsFilesOfOthers(command, workspace) ? 'shell' : undefined

  /** Throws for a command that may not run. */
  const check = (command: string, by: CallingAgent, standing: Standing) => {
    const shown = readableFolders(host, by)
    if (takes(by.policy) && mayGiveScripts(standing)) return checkScript(command, by, { confines: host.confines(), shown })
    try {
      checkCommand(command, by, shown)
    } catch (error) {
      if (!(error instanceof AppError)) throw error
      throw new AppError(error.code, `${error.message}${error.code === 'forbidden' ? plainReason(by.policy, standing) : ''}`, {
        cause: error,
      })
    }
  }

  /** The process of a command. A command that only reads was judged by the rules of `sh`. */
  const requestFor = (command: string, context: ToolContext): Omit<SpawnRequest, 'signal' | 'timeoutMs'> => {
    const { workspace, policy, standing } = context
    const { root } = workspace
    const readable = readableFolders(host, context)
    const isScript = takes(policy) && mayGiveScripts(standing) && commandRisk(command, workspace) === 'execute'
    return {
      file: isScript && hasProgram('bash') ? 'bash' : 'sh',
      args: ['-c', command],
      cwd: root,
      env: environment(root, config.env_passthrough),
      policy: { writable: [root], ...(readable.length > 0 && { readable }), network: config.network },
      outputBytesMax: config.output_bytes_max,
    }
  }

  const tool = defineTool({
    name: 'shell',
    description:
      'Runs a shell command in the workspace and returns its output and exit code. A command that runs long goes on in the background.',
    input: v.object({
      command: v.pipe(v.string(), v.minLength(1), v.maxLength(COMMAND_CHARS_MAX), v.description('The command')),
      timeout_secs: v.optional(v.pipe(whole(1, waitSecsMax), v.description('Seconds to wait for it')), waitSecsMax),
    }),
    // Runs before the approval, so that the operator is not asked about a command that the policy refuses anyway.
    async precheck({ command }, by) {
      // The sandbox decides whether the command may run, and who may approve it.
      await host.sandboxChosen()
      check(command, by, by.standing)
    },
    alwaysAsks: ({ command }, { policy }) => !takes(policy) && asksForArguments(command, policy),
    risk: ({ command }, { workspace }) => commandRisk(command, workspace),
    // Without a sandbox a command has the rights of the daemon, and so the rights of an operator.
    decider: ({ command }, { workspace, policy, standing }) => {
      const isFree = host.confines() || commandRisk(command, workspace) !== 'execute'
      const asksAnyway = takes(policy) && !mayGiveScripts(standing) && asksForArguments(command, policy)
      return isFree && !asksAnyway ? 'asker' : 'operator'
    },
    // A command that can send data is never harmless, so it has the risk `execute`.
    egress: false,
    untrusted: ({ command }, { workspace }) => source(command, workspace),
    async run({ command, timeout_secs }, context) {
      const { session, signal, report, standing } = context
      await host.sandboxChosen()
      check(command, context, standing)
      const request = requestFor(command, context)
      const canRunOn = session !== null && background_secs > timeout_secs
      const timeoutMs = (canRunOn ? background_secs : timeout_secs) * 1000
      const job = new Job(host.spawn, { ...request, timeoutMs }, { session: session ?? '', command })
      const onAbort = () => job.stop()
      signal.addEventListener('abort', onAbort, { once: true })
      if (signal.aborted) job.stop()
      try {
        if (canRunOn && !(await endsWithin(job.result, timeout_secs * 1000, host.clock)) && !signal.aborted) {
          const output = job.read()
          if (jobs.keep(job)) {
            report?.({ data: output.trimEnd() })
            return joined([output, runsOn(job, timeout_secs)])
          }
          job.stop()
          await job.result
          throw new AppError('unavailable', `Too many commands run in the background, so this one was ended after ${timeout_secs} s`)
        }
        const result = await job.result
        if (signal.aborted) throw new AppError('aborted', 'The command was stopped because its turn was aborted')
        report?.({ ...(result.exitCode !== 0 && { failed: true }), data: result.stdout.trimEnd() })
        return resultText(result, `${timeout_secs} s`)
      } finally {
        signal.removeEventListener('abort', onAbort)
      }
    },
  })
  return { tool, source }
}

const runsOn = ({ id }: Job, secs: number): string =>
  `[it still runs after ${secs} s, in the background, as ${id}: shell_wait waits for it, and shell_stop ends it]`

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
