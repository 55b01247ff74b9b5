/** What subscribers are told of approvals (§6). */
import type { Approval, Events } from '@sluice/sdk'
import { isoTime } from '../http/iso-time.ts'

export const tellRequested = (events: Events, { runId, stepId, workflow, title, message, expiresAtMs }: Approval): void =>
  events.emit({
    type: 'human_approval_request',
    run_id: runId,
    step_id: stepId,
    workflow_name: workflow,
    title,
    message,
    expires_at: isoTime(expiresAtMs),
  })

export function tellResolved(events: Events, { runId, stepId, state, by, feedback }: Approval): void {
  if (state === 'pending') return
  const approved = state === 'approved'
  events.emit({ type: 'human_approval_resolved', run_id: runId, step_id: stepId, approved, state, feedback, by: by ?? 'system' })
}
