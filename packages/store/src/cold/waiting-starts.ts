/** The refusal and the record of events that meet waiting runs. */
import { AppError, type NewAudit, type SopDispatch, type SopRun } from '@sluice/sdk'

/** A sender repeats an event that is refused after this long. */
const RETRY_AFTER_SECS = 30

/** Returns the refusal of an event that no procedure takes, when at least one would have kept it were there room. */
export function fullError(results: readonly { readonly dispatch: SopDispatch; readonly isFull?: boolean }[]): AppError | undefined {
  const full = results.find(({ isFull }) => isFull)?.dispatch
  if (full?.status !== 'skipped' || results.some(({ dispatch: { status } }) => status !== 'skipped')) return undefined
  return new AppError('unavailable', `The procedure "${full.sop}" takes no event at the moment: ${full.reason}`, {
    retryAfterSecs: RETRY_AFTER_SECS,
  })
}

/** Returns the record of a waiting event whose place a newer one takes. */
export const replacedRecord = ({ sop, id, event: { by, source, topic } }: SopRun, atMs: number): NewAudit => ({
  kind: 'trigger_skipped',
  atMs,
  sop,
  run: null,
  step: null,
  by,
  reason: 'a newer event of this trigger took its place while it waited',
  detail: { source, topic, waiting: id },
})
