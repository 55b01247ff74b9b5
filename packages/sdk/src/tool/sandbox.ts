/** The port of sandbox backends and of starting processes (docs/contract.md#sandbox). */

/** The permissions of a process. The tighter of these and the operator's configuration applies. */
export interface SandboxPolicy {
  /** The folders below which the process may write, as absolute resolved paths. All other files are read-only or hidden. */
  readonly writable: readonly string[]
  /** Further folders that the process may read and run programs from, even inside the data directory. Missing ones are left out. */
  readonly readable?: readonly string[]
  readonly network: boolean
  /**
   * The device nodes, or folders of them such as `/dev/bus/usb`, that the process may read, write and control, as absolute paths
   * below `/dev`. With at least one of them it may also read `/sys`. Paths that do not exist are left out.
   */
  readonly devices?: readonly string[]
  /** The limit of one process, or of all processes together where the backend can count them. */
  readonly memoryBytesMax?: number
  readonly processesMax?: number
  /** The largest size of a single file. */
  readonly fileBytesMax?: number
  /** The processor time of a single process. */
  readonly cpuSecsMax?: number
}

/** A process to start. `env` is its whole environment; nothing is inherited. */
export interface ProcessCommand {
  readonly file: string
  readonly args: readonly string[]
  readonly cwd: string
  readonly env: Readonly<Record<string, string>>
}

/** The result of a live probe of a backend. */
export interface SandboxProbe {
  readonly available: boolean
  /** Why the backend is not available, or what was measured, such as `Landlock ABI 7: files, TCP`. */
  readonly detail: string
  /** True when the backend is installed but not available, so that it may work later. */
  readonly isInstalled?: boolean
}

export interface Sandbox {
  /** The value of `[security.sandbox] backend`. */
  readonly name: string
  /** The rank for `auto`, which chooses the strongest backend whose probe passes. The no-op has rank 0. */
  readonly strength: number
  /**
   * Tells whether the program or system call of the backend works. Called before the first `wrap`. Never throws. A command that
   * tries to escape then verifies that the backend confines.
   */
  probe(signal: AbortSignal, run: RunBare): Promise<SandboxProbe>
  /** Returns the command that runs `command` confined. `release` cleans up what remains after the process was killed. */
  wrap(command: ProcessCommand, policy: SandboxPolicy): Promise<WrappedCommand> | WrappedCommand
}

export interface WrappedCommand extends ProcessCommand {
  release?(run: RunBare): Promise<void>
}

/** Runs a program of the backend, such as `docker info`, unconfined and to its end. Rejects as `Spawn` does. */
export type RunBare = (command: ProcessCommand, signal: AbortSignal) => Promise<Pick<SpawnResult, 'exitCode' | 'stdout' | 'stderr'>>

export interface SpawnRequest extends ProcessCommand {
  readonly policy: SandboxPolicy
  readonly timeoutMs: number
  /** The largest text of each of standard output and standard error. Of more, both ends remain, with a line about the bytes between them. */
  readonly outputBytesMax: number
  readonly input?: string
  readonly signal: AbortSignal
  /** Called with each piece of output, however much there is. */
  onOutput?(stream: 'stdout' | 'stderr', text: string): void
  /**
   * Given for a program that is talked to while it runs. Called once it has started. Its standard output then goes to the pipes
   * only, `input` is not used, and a `timeoutMs` of `Number.POSITIVE_INFINITY` lets it run until `signal` aborts.
   */
  onStart?(pipes: ProcessPipes): void
}

/** The standard input and output of a running program. */
export interface ProcessPipes {
  /** The bytes of standard output. The program waits while they are not read. Ends or rejects with the program. */
  readonly output: AsyncIterable<Uint8Array>
  /** Writes to standard input. Resolves when the program takes more, or has ended; never rejects. */
  write(text: string): Promise<void>
}

export interface SpawnResult {
  /** The exit code; `null` when a signal ended the process. */
  readonly exitCode: number | null
  readonly signal: string | null
  readonly timedOut: boolean
  readonly stdout: string
  readonly stderr: string
  /** Whether standard output or standard error lacks bytes. */
  readonly truncated: boolean
  /** The backend that confined the process; `none` without a sandbox. */
  readonly sandbox: string
}

/** Returns the note of a tool result about a process that ran without a sandbox; empty for every other process. */
export const unconfinedNote = ({ sandbox }: Pick<SpawnResult, 'sandbox'>): string => (sandbox === 'none' ? '[ran without a sandbox]' : '')

/**
 * Runs a process to its end in its own process group inside the chosen sandbox. On time-out or abort the whole group gets SIGTERM
 * and two seconds later SIGKILL, as do remaining processes of the group when the program ends. Rejects with `unavailable` when a
 * required sandbox is missing, with `not_found` when the program does not exist, and with `aborted` when the signal aborted before
 * the start. Every exit of the program is a result.
 */
export type Spawn = (request: SpawnRequest) => Promise<SpawnResult>
