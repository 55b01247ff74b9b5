/** The port of companions: processes of a feature's own, for what must go on while the daemon is busy, hangs or was killed. */

export interface CompanionRequest {
  /**
   * `import.meta.url` of the module it runs. That module looks at `process.argv[2]` for `mark` before it does anything, and is
   * only ever imported dynamically, so that a bundler gives it a file of its own.
   */
  readonly module: string
  readonly mark: string
  /** The first message it gets. */
  readonly init: unknown
  /** Called with each message of its own, in order. Must not throw. */
  onMessage(message: unknown): void
  /** Called once when it has ended, for whatever reason. */
  onEnd(why: string): void
}

/**
 * It is given nothing of the daemon's environment and none of its streams, leads a process group of its own, and sees
 * `disconnect` the moment the daemon closes it or is gone, however that ended: it then has to end by itself.
 */
export interface Companion {
  readonly pid: number
  /** Structured clones, as of `node:v8`. Throws `unavailable` when it has ended or does not read, `too_large` for a message over 64 KiB. */
  send(message: unknown): void
  /** Resolves once it has ended; one that takes longer than two seconds is killed. Idempotent. */
  close(): Promise<void>
}

/** Rejects with `unavailable` where no process can be started. */
export type StartCompanion = (request: CompanionRequest) => Promise<Companion>
