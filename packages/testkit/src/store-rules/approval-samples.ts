/** Sample approvals with defaults for every member a rule does not care about. */
import type { Decision, NewApproval } from '@sluice/sdk'

/** An approval to open for the first step of a run. */
export const asked = (runId: string, part: Partial<NewApproval> = {}): NewApproval => {
  const { stepId = 'step-1' } = part
  return {
    runId,
    stepId,
    gate: 'sop',
    workflow: 'deploy',
    title: 'Deploy?',
    message: `May ${runId} go on?`,
    callHash: 'the hash of a call',
    owner: 'device-1',
    person: 'ann',
    decider: 'asker',
    standing: 'listed',
    sources: ['message from eve on roomchat'],
    approveKeywords: ['approve', 'yes'],
    rejectKeywords: ['reject'],
    createdAtMs: 1_000,
    expiresAtMs: 61_000,
    token: `token of ${runId} ${stepId}`,
    ...part,
  }
}

/** A decision in this state. */
export const decision = (state: Decision['state'], part: Partial<Decision> = {}): Decision => ({
  state,
  by: 'roomchat:+15550100',
  standing: 'operator',
  feedback: null,
  atMs: 2_000,
  ...part,
})
