/** What is answered to those who cannot decide an approval. */
import { AppError, type Approval, type ApprovalKey } from '@sluice/sdk'

export const unknownApproval = ({ runId, stepId }: ApprovalKey): AppError =>
  new AppError('not_found', `There is no approval of step ${stepId} of run ${runId}`)

export const notYours = (): AppError =>
  new AppError(
    'forbidden',
    'A tool call is decided by the device that asked, by `sluice approvals` on this machine, or by the configured approvers ([approvals] channels)',
  )

export const decidedBefore = ({ state, by }: Pick<Approval, 'state' | 'by'>): AppError =>
  new AppError('conflict', `It was ${state} before by ${by}`, { fields: { state, by } })
