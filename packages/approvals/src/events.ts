/** The events of approvals. */

import { isoTime } from '@sluice/kit'
import type { Approval, EventEnvelope, SluiceEvent } from '@sluice/sdk'
import { outlineOf } from './api.ts'

/** The part of the event bus that approvals use. */
export interface ApprovalEvents {
  /** `outline` replaces the event for operators who do not own it. */
  emit(event: SluiceEvent, owner?: string, outline?: SluiceEvent): void
  /** Calls `receive` with every event until the returned function is called. */
  subscribe(receive: (event: { readonly envelope: EventEnvelope }) => void): () => void
}

/** `isShared`: every operator sees the whole request, not only the device that a tool call belongs to. */
export function emitRequested(bus: Pick<ApprovalEvents, 'emit'>, approval: Approval, isShared: boolean): void {
  const owner = approval.owner ?? undefined
  if (approval.gate !== 'tool' || isShared) bus.emit(requested(approval), owner)
  else bus.emit(requested(approval), owner, requested(outlineOf(approval)))
}

export function emitResolved(bus: Pick<ApprovalEvents, 'emit'>, { runId, stepId, state, by, feedback, owner }: Approval): void {
  if (state === 'pending') return
  const about = { run_id: runId, step_id: stepId, approved: state === 'approved', state, feedback, by: by ?? 'system' }
  bus.emit({ type: 'human_approval_resolved', ...about }, owner ?? undefined)
}

const requested = ({ runId, stepId, workflow, title, message, expiresAtMs }: Approval): SluiceEvent => ({
  type: 'human_approval_request',
  run_id: runId,
  step_id: stepId,
  workflow_name: workflow,
  title,
  message,
  expires_at: isoTime(expiresAtMs),
})
