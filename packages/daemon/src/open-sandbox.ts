/** A sandbox alone: commands of a program, confined by a backend, without agent, store and server. */

import type { SandboxPolicy, SpawnResult } from '@sluice/sdk'
import { type EmbeddingOptions, runtimeOptions } from './embedding-options.ts'
import { openRuntime } from './runtime/open-runtime.ts'

const TIMEOUT_MS = 60_000
const OUTPUT_BYTES_MAX = 1024 * 1024

export interface ConfinedCommand {
  /** The program: a path, or a name in the `PATH` of `env`. */
  readonly file: string
  readonly args?: readonly string[]
  /** The working folder; default: the workspace, `[agent] workspace`. */
  readonly cwd?: string
  /** The whole environment; nothing is inherited. Default: a usual `PATH`. */
  readonly env?: Readonly<Record<string, string>>
  /** Default: a writable workspace, and no network. */
  readonly policy?: Partial<SandboxPolicy>
  /** In milliseconds; default: one minute. */
  readonly timeoutMs?: number
  /** The largest text of each stream. Of more, both ends remain, with a line about the bytes between them. Default: 1 MiB. */
  readonly outputBytesMax?: number
  /** Text for standard input. */
  readonly input?: string
  readonly signal?: AbortSignal
}

export interface SandboxAlone extends AsyncDisposable {
  /** The name of the backend that passed its probe, and what was measured; `none` without one. */
  readonly backend: { readonly name: string; readonly detail: string }
  /** The folder in which commands run unless they name another one. */
  readonly workspace: string
  /**
   * Runs a command to its end. Rejects as `Spawn` of the sdk: with `unavailable` when no backend works and `[security.sandbox]
   * required` is true, which is the default here. Every exit of the program is a result.
   */
  run(command: ConfinedCommand): Promise<SpawnResult>
  close(): Promise<void>
}

/**
 * Chooses the strongest of the backends in `features` that works on this machine: a command that tries to escape from it proves it.
 * `dataDir` holds the workspace, unless the configuration names another one; no database is opened.
 */
export async function openSandbox(options: EmbeddingOptions): Promise<SandboxAlone> {
  const { config } = options
  const required = { security: { sandbox: { required: true } } }
  const given = runtimeOptions({ ...options, config: config ?? required })
  const runtime = await openRuntime({ ...given, only: 'features', needsModel: false })
  const { sandbox, probes, warning } = await runtime.guards().sandbox.choice()
  const close = () => runtime.close(0)
  const [workspace = given.dataDir] = runtime.guards().workspaces
  return {
    backend: { name: sandbox.name, detail: probes.find(({ name }) => name === sandbox.name)?.detail ?? warning ?? 'no backend works' },
    workspace,
    run: ({ policy, ...command }) =>
      runtime.guards().spawn({
        args: [],
        cwd: workspace,
        env: { PATH: '/usr/local/bin:/usr/bin:/bin' },
        timeoutMs: TIMEOUT_MS,
        outputBytesMax: OUTPUT_BYTES_MAX,
        signal: new AbortController().signal,
        ...command,
        policy: { writable: [workspace], network: false, ...policy },
      }),
    close,
    [Symbol.asyncDispose]: close,
  }
}
