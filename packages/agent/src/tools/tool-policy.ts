/** Applies the policy to a tool call: run it, refuse it, or ask a person first (docs/contract.md#policy). */
import { type CallingAgent, type Decider, isAtLeast, type Policy, policyHeader, type Risk, type Standing, type Tool } from '@sluice/sdk'

export type Verdict = 'run' | 'ask' | 'refuse'

const lists = (names: readonly string[], tool: string): boolean => names.includes(tool) || names.includes('*')

interface JudgedTool extends Pick<Tool, 'name'> {
  readonly alwaysAsks: boolean
  /** True when the turn has read untrusted text and the policy asks about this call for that reason. */
  readonly asksAfterUntrusted: boolean
  /** True when only an operator decides the call, and the turn is not one of an operator. */
  readonly needsOperator: boolean
}

/** Returns the verdict. The input of a call influences it only through the functions of the tool, such as `risk`. */
export function verdict(policy: Policy, { name, alwaysAsks, asksAfterUntrusted, needsOperator }: JudgedTool, risk: Risk): Verdict {
  if (policy.level === 'readonly' && risk !== 'read') return 'refuse'
  if (alwaysAsks || asksAfterUntrusted || needsOperator) return 'ask'
  if (policy.level === 'full') return 'run'
  if (lists(policy.always_ask, name)) return 'ask'
  return risk === 'execute' && !lists(policy.auto_approve, name) ? 'ask' : 'run'
}

/** Returns who decides the call by the declaration of its tool. */
export const declaredDecider = (
  { decider = 'asker' }: Pick<Tool, 'decider'>,
  input: unknown,
  by: CallingAgent,
  standing: Standing,
): Decider => (typeof decider === 'function' ? decider(input, { ...by, standing }) : decider)

/** Returns who decides when a person is asked: a principal below `listed` decides nothing. */
export const askedDecider = (declared: Decider, standing: Standing): Decider => (isAtLeast(standing, 'listed') ? declared : 'operator')

export const refusedText = (agent: string, tool: string): string =>
  `Not run: ${tool} has effects, and the operator's policy allows only tools without effects (${policyHeader(agent)} level = "readonly").`

export interface Denial {
  /** True when a person was asked and did not approve. */
  readonly asked: boolean
  /** The source of the untrusted text because of which the call needs an approval. */
  readonly untrusted: string | undefined
  /** True when only an operator could decide, and the turn is not one of an operator. */
  readonly needsOperator: boolean
}

/** Returns the refusal, with the setting that allows the call. */
export function deniedText(
  agent: string,
  policy: Policy,
  { name, alwaysAsks, address }: Pick<Tool, 'name' | 'alwaysAsks' | 'address'>,
  { asked, untrusted, needsOperator }: Denial,
): string {
  if (needsOperator) return operatorDenied(name, asked)
  const denied = `Not run: ${name} needs a person's approval ${asked ? 'and did not get it' : 'and there is no person to ask here'}.`
  if (alwaysAsks === true) return `${denied} It never runs without an approval.`
  if (untrusted !== undefined) {
    const reason = `It needs one because this conversation contains untrusted text (${untrusted}).`
    if (address) return `${denied} ${reason} Addresses that a person has written, or a search has shown, need none.`
    return `${denied} ${reason} A new session does not contain it. The setting is ask_after_untrusted under ${policyHeader(agent)}.`
  }
  const isListed = lists(policy.auto_approve, name) && !lists(policy.always_ask, name)
  if (alwaysAsks && isListed) return `${denied} With this input it never runs without an approval.`
  const cure = lists(policy.always_ask, name)
    ? `takes it out of always_ask under ${policyHeader(agent)}`
    : `adds "${name}" to auto_approve under ${policyHeader(agent)}`
  return `${denied} To let it run without an approval, an operator ${cure}.`
}

export const operatorDenied = (name: string, asked: boolean): string =>
  asked
    ? `Not run: ${name} needs the approval of an operator and did not get it.`
    : `Not run: ${name} needs the approval of an operator, and none can be asked. An operator names a conversation in [approvals] channels, or pairs a device of the role operator.`
