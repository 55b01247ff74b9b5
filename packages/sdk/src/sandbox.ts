/** The port of every isolation backend, and of spawning at all (§2.6 `[security.sandbox]`). */

/** What a process may do; the tighter of this and the operator's configuration holds. */
export interface SandboxPolicy {
  /** Folders the process may write below; everything else is read-only or hidden. Absolute, resolved. */
  readonly writable: readonly string[]
  readonly network: boolean
  /**
   * Device nodes, or folders of them such as `/dev/bus/usb`, the process may read, write and control; with any of them it may
   * read what the kernel says of devices (`/sys`). Absolute, below `/dev`; what is not there is left out.
   */
  readonly devices?: readonly string[]
  /** Of one process, or of all together where the backend can count them so. */
  readonly memoryBytesMax?: number
  readonly processesMax?: number
  /** Of one file. */
  readonly fileBytesMax?: number
  /** Of one process. */
  readonly cpuSecsMax?: number
}

/** A process to be. `env` is the whole environment: nothing is inherited. */
export interface ProcessCommand {
  readonly file: string
  readonly args: readonly string[]
  readonly cwd: string
  readonly env: Readonly<Record<string, string>>
}

/** What a live probe of a backend found on this machine. */
export interface SandboxProbe {
  readonly available: boolean
  /** Why not, or what was measured, such as `Landlock ABI 7: files, TCP`. */
  readonly detail: string
  /** True of a backend that is not available: everything it takes is on this machine, so that it may work later. */
  readonly isInstalled?: boolean
}

export interface Sandbox {
  /** The value of `[security.sandbox] backend`. */
  readonly name: string
  /** Orders `auto`: the strongest backend whose probe passes is taken. The no-op is 0. */
  readonly strength: number
  /**
   * Whether its program or system call is there and works; called before the first `wrap`. Never throws. That it confines
   * is then proved by a command that tries to get out.
   */
  probe(signal: AbortSignal, run: RunBare): Promise<SandboxProbe>
  /** The command that runs `command` confined. `release` ends what killing the process leaves behind. */
  wrap(command: ProcessCommand, policy: SandboxPolicy): Promise<WrappedCommand> | WrappedCommand
}

export interface WrappedCommand extends ProcessCommand {
  release?(run: RunBare): Promise<void>
}

/** Runs a program of the backend itself, such as `docker info`, unconfined, to its end. Rejects as `Spawn` does. */
export type RunBare = (command: ProcessCommand, signal: AbortSignal) => Promise<Pick<SpawnResult, 'exitCode' | 'stdout' | 'stderr'>>

export interface SpawnRequest extends ProcessCommand {
  readonly policy: SandboxPolicy
  readonly timeoutMs: number
  /** Of standard output and of standard error, each; what is over it is dropped and marked. */
  readonly outputBytesMax: number
  readonly input?: string
  readonly signal: AbortSignal
  /** Called with each piece of output as it comes. */
  onOutput?(stream: 'stdout' | 'stderr', text: string): void
}

export interface SpawnResult {
  /** `null` when a signal ended it. */
  readonly exitCode: number | null
  readonly signal: string | null
  readonly timedOut: boolean
  readonly stdout: string
  readonly stderr: string
  readonly truncated: boolean
  /** The backend that confined it; `none` where it ran without a sandbox. */
  readonly sandbox: string
}

/** What the result of a tool says of a process that ran without a sandbox; empty for any other. */
export const unconfinedNote = ({ sandbox }: Pick<SpawnResult, 'sandbox'>): string => (sandbox === 'none' ? '[ran without a sandbox]' : '')

/**
 * Runs a process to its end, in its own process group, inside the chosen sandbox. On time-out or abort the whole group
 * gets SIGTERM and, two seconds later, SIGKILL; so does what is left of the group when the program itself ends. Rejects
 * with `unavailable` when the sandbox is required and missing, with `not_found` when the program is not there, and with
 * `aborted` when the signal aborted before the start; any exit of the program itself is a result.
 */
export type Spawn = (request: SpawnRequest) => Promise<SpawnResult>
