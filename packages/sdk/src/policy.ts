/** The agent's security policy, `[security.policy]`; one per agent, independent of the client (§1 item 6). */

export type PolicyLevel = 'readonly' | 'supervised' | 'full'

export interface Policy {
  /**
   * `readonly` refuses every tool that is not `read`; `supervised` asks a person before `execute` calls that are neither
   * auto-approved nor allowed by the tool's own rules; `full` asks nobody. Tools that always ask do so at any level.
   */
  readonly level: PolicyLevel
  /** Programs `shell` may start, by name; an entry with `/` must match the whole path; `*` allows any. */
  readonly allowed_commands: readonly string[]
  /** Paths no tool touches, even where the workspace would allow it; `~` is the home directory. */
  readonly forbidden_paths: readonly string[]
  /** Tools that never need a person; `*` for all. */
  readonly auto_approve: readonly string[]
  /** Tools that always need one below `full`; wins over `auto_approve`. */
  readonly always_ask: readonly string[]
}
