/** The acts on the process that runs the daemon, for the commands that ask for them. */

/** The changes of a reload, or the reason why the configuration in force stays. */
export type Reloaded =
  | { readonly sections: readonly string[]; readonly rebuilt: readonly string[] }
  /** An `AppError` with the problems of the file, or the error of a file that cannot be read. */
  | { readonly error: unknown }

/** The acts on the process that runs the daemon. */
export interface ProcessControl {
  /** Reads the configuration file again and applies it. Never rejects. */
  readonly reload: () => Promise<Reloaded>
  /** Ends the daemon, and its process, as SIGTERM does. Absent in a program that embeds Sluice. */
  readonly stop?: (() => void) | undefined
  /** Ends the daemon and begins the program again as the same process. Absent where the process cannot do so. */
  readonly restart?: (() => void) | undefined
}
