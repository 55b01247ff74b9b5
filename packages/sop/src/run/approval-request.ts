/** The question that a person decides before a run goes on. It describes the step and the event that started the run. */
import { type ApprovalRequest, isAtLeast, ownerOfRun, type SopGate, type SopRun } from '@sluice/sdk'
import { brief } from './audit-record.ts'
import { plainLine, startedBy } from './step-prompt.ts'

const TITLE_CHARS_MAX = 256
const BODY_CHARS_MAX = 1500
const TOOLS_CHARS_MAX = 1000
const PAYLOAD_BYTES_MAX = 500

interface RequestOptions {
  /** The actor that started the run, as people read it. */
  readonly starter: string
  readonly timeoutSecs: number
}

/**
 * Operators decide the question, and the sender who started the run by a message, in the conversation of that message. A device that
 * started the run sees the question. The question of a checkpoint never expires. Any other question expires after `timeoutSecs`.
 */
export function approvalRequestOf(run: SopRun, gate: SopGate, { starter, timeoutSecs }: RequestOptions): ApprovalRequest {
  const { event } = run
  const { origin, standing } = event
  const asksStarter = origin !== undefined && standing !== undefined && isAtLeast(standing, 'listed')
  const owner = ownerOfRun(run)
  const step = run.steps[run.step - 1]
  const lines = [
    ...(gate.why === 'again'
      ? ['This step was interrupted after it had begun, and may have taken effect. If you approve, it runs again.']
      : []),
    ...(step?.body ? [brief(step.body, BODY_CHARS_MAX)] : []),
    ...(step?.tools && step.tools.length > 0 ? [`Tools: ${brief(step.tools.join(', '), TOOLS_CHARS_MAX)}`] : []),
    startedBy(run, starter),
    ...(event.payload ? [`Payload: ${plainLine(event.payload, PAYLOAD_BYTES_MAX)}`] : []),
    ...(run.status === 'paused_checkpoint' ? ['The run goes on once this checkpoint is approved.'] : []),
  ]
  return {
    runId: run.id,
    stepId: gate.stepId,
    gate: 'sop',
    workflow: run.sop,
    title: brief(`${run.sop}: step ${run.step} of ${run.steps.length}: ${step?.title ?? ''}`, TITLE_CHARS_MAX),
    message: lines.join('\n'),
    timeoutSecs: gate.why === 'checkpoint' ? 0 : timeoutSecs,
    ...(asksStarter ? { decider: 'starter', standing, origin } : { decider: 'operator' }),
    ...(owner !== undefined && { owner }),
  }
}
