/** The port of companions: processes of a feature that go on while the daemon is busy, hangs or was killed. */

export interface CompanionRequest {
  /**
   * The `import.meta.url` of the module to run. The module must check `process.argv[2]` for `mark` before it does anything, and must
   * only be imported dynamically, so that a bundler gives it a separate file.
   */
  readonly module: string
  readonly mark: string
  /** The first message to the companion. */
  readonly init: unknown
  /** Called with each message of the companion, in order. Must not throw. */
  onMessage(message: unknown): void
  /** Called once when the companion has ended, for any reason. */
  onEnd(why: string): void
}

/**
 * A running companion. It has no environment variables and streams of the daemon, leads its own process group, and gets
 * `disconnect` as soon as the daemon closes it or has ended for any reason. It must then end by itself.
 */
export interface Companion {
  readonly pid: number
  /** Sends a structured clone, as `node:v8` makes it. Throws `unavailable` when the companion has ended or does not read, and `too_large` for a message over 64 KiB. */
  send(message: unknown): void
  /** Resolves when the companion has ended; kills it after two seconds. Idempotent. */
  close(): Promise<void>
}

/** Starts a companion. Rejects with `unavailable` when no process can be started. */
export type StartCompanion = (request: CompanionRequest) => Promise<Companion>
