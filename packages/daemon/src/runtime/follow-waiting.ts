/** Reports what waits for people to features that notify them: approvals, and messages and replies that were given up. */
import { mayDecide } from '@sluice/approvals'
import { channelTitle, type Runtime } from '@sluice/runtime'
import type { Approval, ApprovalKey, FollowWaiting, PairedDevice, SluiceEvent, WaitingWork } from '@sluice/sdk'

type Receive = Parameters<FollowWaiting>[0]

/** Each process reports what it has emitted itself, so a cluster reports everything once. */
export function createFollowWaiting({
  bus,
  approvals,
  snapshot,
  log,
}: Pick<Runtime, 'bus' | 'approvals' | 'snapshot' | 'log'>): FollowWaiting {
  const receivers = new Set<Receive>()
  const report = (waiting: WaitingWork): void => {
    for (const receive of receivers) receive(waiting)
  }
  const reportApproval = async (key: ApprovalKey): Promise<void> => {
    const approval = await approvals.get(key)
    if (approval?.state === 'pending') report(waitingApproval(approval, approvals))
  }
  bus.observe((event: SluiceEvent) => {
    if (receivers.size === 0) return
    if (event.type === 'delivery' && event.state === 'dead') {
      const { direction, channel, number } = event
      report({ kind: 'dead_letter', direction, channel: channelTitle(channel, snapshot().features), number })
    }
    if (event.type === 'human_approval_request') {
      const { run_id: runId, step_id: stepId } = event
      reportApproval({ runId, stepId }).catch((error: unknown) => log.error('approval not reported', { run: runId, step: stepId, error }))
    }
  })
  return (receive) => {
    receivers.add(receive)
    return () => void receivers.delete(receive)
  }
}

function waitingApproval(approval: Approval, approvals: Runtime['approvals']): WaitingWork {
  const { runId, stepId, gate, workflow, expiresAtMs, owner } = approval
  return {
    kind: 'approval',
    runId,
    stepId,
    gate,
    name: workflow,
    expiresAtMs,
    mayDecide: ({ id, role }: PairedDevice) =>
      approvals.access(approval, { role, owner: id, onControlSocket: false }) === 'whole' &&
      mayDecide(approval, { standing: role, isAsked: owner === id }),
    isOpen: async () => (await approvals.get(approval))?.state === 'pending',
  }
}
