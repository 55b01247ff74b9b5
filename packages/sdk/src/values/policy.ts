/** The security policy of the agent, `[security.policy]`; the same for all clients (docs/contract.md#policy). */

export type PolicyLevel = 'readonly' | 'supervised' | 'full'

/** The forms of a command that the `shell` tool takes; see `Policy.shell`. */
export const SHELL_MODES = ['plain', 'script'] as const
export type ShellMode = (typeof SHELL_MODES)[number]

export interface Policy {
  /**
   * `readonly` refuses every tool that is not `read`. `supervised` needs an approval for `execute` calls that neither
   * `auto_approve` nor the rules of the tool allow. `full` needs no approval. Tools that always ask do so at every level.
   */
  readonly level: PolicyLevel
  /**
   * `plain`: `shell` takes commands whose words are known before they run. `script`: it takes any text where a sandbox works, and with
   * `full`; elsewhere, and from principals below `listed`, it takes plain commands. Absent: `plain`.
   */
  readonly shell?: ShellMode | undefined
  /** The programs that plain commands of `shell` may start, by name. An entry with `/` must match the whole path; `*` allows every program. */
  readonly allowed_commands: readonly string[]
  /** The paths that no tool may touch, also inside the workspace; `~` is the home directory. */
  readonly forbidden_paths: readonly string[]
  /** The tools whose calls need no approval; `*` for all. */
  readonly auto_approve: readonly string[]
  /** The tools whose calls always need an approval below `full`; overrides `auto_approve`. */
  readonly always_ask: readonly string[]
  /** Whether calls with effects, and calls that send data out, need an approval at every level once the turn has read untrusted text. */
  readonly ask_after_untrusted: boolean
}
