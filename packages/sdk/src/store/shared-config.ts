/** The port of the configuration that all nodes of a cluster share. */

export interface ConfigVersion {
  /** Grows with each change. */
  readonly version: number
  /** TOML, with secrets as `sluice config seal` writes them. */
  readonly text: string
  /** Who changed it: a node, or a client. */
  readonly by: string
  readonly atMs: number
}

export interface SharedConfig {
  /** Resolves to the newest version; undefined before the first one. */
  read(): Promise<ConfigVersion | undefined>
  /** Stores the text as the version after `expected`, 0 for the first one. Resolves to undefined when another version is the newest. */
  replace(text: string, expected: number, by: string): Promise<ConfigVersion | undefined>
  /** Calls `changed` soon after another version was stored, within about a second, until the signal aborts. Must not throw. */
  watch(changed: (config: ConfigVersion) => void, seen: number, signal: AbortSignal): void
  /** Tells the other nodes which version is in force on this one. */
  report(version: number): Promise<void>
}
