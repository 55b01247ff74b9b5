/** The approvals that other processes of the same store open and decide. A process that has the store to itself gets and reads nothing. */
import { shareRuns } from '@sluice/kit'
import type { Ownership } from '@sluice/ownership'
import type { ApprovalKey, ApprovalStore, ClusterNotices, Logger } from '@sluice/sdk'
import type { OpenApprovals } from './open-approvals.ts'

export interface OtherProcesses {
  /** Tells the others that an approval was opened or decided here. */
  tell(key: ApprovalKey): void
  /** Refreshes the open approvals of others. */
  refresh(): Promise<void> | undefined
  leave(): void
}

const NO_OTHERS: OtherProcesses = { tell: () => undefined, refresh: () => undefined, leave: () => undefined }

export interface OthersOptions {
  readonly ownership: Pick<Ownership, 'ownsAll'>
  readonly notices: ClusterNotices | undefined
  readonly store: ApprovalStore
  readonly open: OpenApprovals
  readonly isOwn: (key: ApprovalKey) => boolean
  readonly log: Logger
  /** Takes note of an approval that another process opened or decided. */
  readonly noticed: (key: ApprovalKey) => Promise<void>
}

export function otherProcesses({ ownership, notices, store, open, isOwn, log, noticed }: OthersOptions): OtherProcesses {
  if (ownership.ownsAll) return NO_OTHERS
  const leave = notices?.listen((notice) => {
    if (notice.what !== 'approval') return
    noticed(notice).catch((error: unknown) => log.warn('approval of another node not read', { error }))
  })
  return {
    tell: ({ runId, stepId }) => notices?.send({ what: 'approval', runId, stepId }),
    refresh: shareRuns(() => open.refresh(store, isOwn)),
    leave: () => leave?.(),
  }
}
