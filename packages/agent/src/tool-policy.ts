/** What the policy says of a tool call: run it, refuse it, or ask a person first (§1 item 6, `[security.policy]`). */
import type { Policy, Risk, Tool } from '@sluice/sdk'

export type Verdict = 'run' | 'ask' | 'refuse'

const lists = (names: readonly string[], tool: string): boolean => names.includes(tool) || names.includes('*')

/** Nothing a model writes into a call can change the verdict, but for what the tool's own `risk` makes of the input. */
export function verdict(policy: Policy, { name, alwaysAsks }: Pick<Tool, 'name'> & { readonly alwaysAsks: boolean }, risk: Risk): Verdict {
  if (policy.level === 'readonly' && risk !== 'read') return 'refuse'
  if (alwaysAsks) return 'ask'
  if (policy.level === 'full') return 'run'
  if (lists(policy.always_ask, name)) return 'ask'
  return risk === 'execute' && !lists(policy.auto_approve, name) ? 'ask' : 'run'
}

export const refusedText = (tool: string): string =>
  `Not run: ${tool} changes things, and the operator's policy only lets tools look ([security.policy] level = "readonly").`

/** `asked`: a person was asked and did not agree. Says how the operator can allow the call for good. */
export function deniedText(policy: Policy, { name, alwaysAsks }: Pick<Tool, 'name' | 'alwaysAsks'>, asked: boolean): string {
  const denied = `Not run: ${name} needs a person's approval ${asked ? 'and was not given it' : 'and there is nobody here to ask'}.`
  if (alwaysAsks === true) return `${denied} It never runs unasked.`
  const isListed = lists(policy.auto_approve, name) && !lists(policy.always_ask, name)
  if (alwaysAsks && isListed) return `${denied} With this input it never runs unasked.`
  const cure = lists(policy.always_ask, name)
    ? `takes it out of always_ask under [security.policy]`
    : `adds "${name}" to auto_approve under [security.policy]`
  return `${denied} An operator who wants it to run unasked ${cure}.`
}
