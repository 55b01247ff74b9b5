/** Applies the policy to a tool call: run it, refuse it, or ask a person first (docs/contract.md#policy). */
import { type Policy, policyHeader, type Risk, type Tool } from '@sluice/sdk'

export type Verdict = 'run' | 'ask' | 'refuse'

const lists = (names: readonly string[], tool: string): boolean => names.includes(tool) || names.includes('*')

/** Returns the verdict. The input of a call influences it only through the `risk` of the tool. */
export function verdict(policy: Policy, { name, alwaysAsks }: Pick<Tool, 'name'> & { readonly alwaysAsks: boolean }, risk: Risk): Verdict {
  if (policy.level === 'readonly' && risk !== 'read') return 'refuse'
  if (alwaysAsks) return 'ask'
  if (policy.level === 'full') return 'run'
  if (lists(policy.always_ask, name)) return 'ask'
  return risk === 'execute' && !lists(policy.auto_approve, name) ? 'ask' : 'run'
}

export const refusedText = (agent: string, tool: string): string =>
  `Not run: ${tool} has effects, and the operator's policy allows only tools without effects (${policyHeader(agent)} level = "readonly").`

/** Returns the refusal, with the setting that allows the call. `asked` is true when a person was asked and did not approve. */
export function deniedText(agent: string, policy: Policy, { name, alwaysAsks }: Pick<Tool, 'name' | 'alwaysAsks'>, asked: boolean): string {
  const denied = `Not run: ${name} needs a person's approval ${asked ? 'and did not get it' : 'and there is no person to ask here'}.`
  if (alwaysAsks === true) return `${denied} It never runs without an approval.`
  const isListed = lists(policy.auto_approve, name) && !lists(policy.always_ask, name)
  if (alwaysAsks && isListed) return `${denied} With this input it never runs without an approval.`
  const cure = lists(policy.always_ask, name)
    ? `takes it out of always_ask under ${policyHeader(agent)}`
    : `adds "${name}" to auto_approve under ${policyHeader(agent)}`
  return `${denied} To let it run without an approval, an operator ${cure}.`
}
