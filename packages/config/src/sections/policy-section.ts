/** The keys of a policy: `[security.policy]`, and the policy of one agent. */
import { SHELL_MODES } from '@sluice/sdk'
import * as v from 'valibot'

export const listOf = (meaning: string) => v.pipe(v.array(v.string()), v.description(meaning))

const COMMANDS = 'git npm cargo ls cat grep find echo pwd wc head tail date python3 node'.split(' ')
const PATHS = ['~/.ssh', '~/.gnupg', '~/.aws', '~/.config', '/etc/shadow', '/proc', '/sys', '/dev']

export const policyLevel = v.pipe(
  v.picklist(['readonly', 'supervised', 'full']),
  v.description(
    'readonly: tools change nothing. supervised: a person approves calls that have effects outside of the workspace. full: no approval, except for tools that always ask',
  ),
)
export const shellMode = v.pipe(
  v.picklist(SHELL_MODES),
  v.description(
    'script: the shell tool runs any script with bash where a sandbox works, and at level full. plain: it runs only commands without expansion and redirection, whose programs allowed_commands lists. Strangers always get plain (default: plain where allowed_commands, always_ask or the policy of the agent is set, else script)',
  ),
)
export const allowedCommands = listOf(
  'Programs that plain commands of the shell tool may start; * allows every program. Only a sandbox confines them. Arguments that are not known to be harmless need an approval, also with auto_approve',
)
export const forbiddenPaths = listOf('Paths that no tool may touch')
export const autoApprove = listOf('Tools whose calls need no approval; * for all')
export const alwaysAsk = listOf('Tools whose calls always need an approval below level full; overrides auto_approve')
export const askAfterUntrusted = v.pipe(
  v.boolean(),
  v.description(
    'Once a turn has read untrusted text, such as a web page or the message of an unknown sender, calls that have effects or send data out need an approval, at every level and also with auto_approve',
  ),
)

/** `[security.policy]`: the tool calls that the agent may make. One policy applies to all clients of an agent. */
export const policySection = {
  path: 'security.policy',
  schema: v.object({
    level: v.optional(policyLevel, 'supervised'),
    shell: v.optional(shellMode),
    allowed_commands: v.optional(allowedCommands, COMMANDS),
    forbidden_paths: v.optional(forbiddenPaths, PATHS),
    auto_approve: v.optional(autoApprove, []),
    always_ask: v.optional(alwaysAsk, []),
    ask_after_untrusted: v.optional(askAfterUntrusted, false),
  }),
} as const
