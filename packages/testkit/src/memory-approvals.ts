/** The approval registry in memory: questions are kept, decided once and taken by their gate; nobody is asked. */
import { AppError, type Approval, type ApprovalGate, type ApprovalKey, type Approvals, type Clock } from '@sluice/sdk'

export interface MemoryApprovals extends Approvals {
  /** Oldest first. */
  all(): readonly Approval[]
}

const keyOf = ({ runId, stepId }: ApprovalKey): string => `${runId} ${stepId}`
const RETRY_MS = 1000

/** `kept` is what outlives a restart: give the same map to the registry that comes after. */
export function memoryApprovals(clock: Clock, kept: Map<string, Approval> = new Map()): MemoryApprovals {
  const takers = new Map<ApprovalGate, (approval: Approval) => Promise<void>>()

  /** Calls the gate until it has taken the decision, or there is no gate any more. */
  async function settle(key: string): Promise<void> {
    for (;;) {
      const approval = kept.get(key)
      const take = approval && takers.get(approval.gate)
      if (!take || approval.state === 'pending' || approval.settledAtMs !== null) return
      try {
        await take(approval)
        kept.set(key, { ...approval, settledAtMs: clock.nowMs() })
        return
      } catch {
        await clock.sleep(RETRY_MS)
      }
    }
  }

  return {
    all: () => [...kept.values()],
    async open({
      gate,
      runId,
      stepId,
      workflow,
      title,
      message,
      callHash = null,
      owner = null,
      origin,
      approveKeywords = [],
      rejectKeywords = [],
      timeoutSecs,
    }) {
      const key = keyOf({ runId, stepId })
      const known = kept.get(key)
      if (known) return { opened: false, approval: known, asked: [] }
      const nowMs = clock.nowMs()
      const approval: Approval = {
        gate,
        runId,
        stepId,
        workflow,
        title,
        message,
        callHash,
        owner,
        person: origin?.sender ?? null,
        approveKeywords,
        rejectKeywords,
        createdAtMs: nowMs,
        expiresAtMs: timeoutSecs === 0 ? null : nowMs + timeoutSecs * 1000,
        token: `token-${kept.size}`,
        state: 'pending',
        by: null,
        feedback: null,
        decidedAtMs: null,
        settledAtMs: null,
        prompts: [],
      }
      kept.set(key, approval)
      return { opened: true, approval, asked: [] }
    },
    async decide(keyed, { state, by, feedback }) {
      const key = keyOf(keyed)
      const known = kept.get(key)
      if (!known) throw new AppError('not_found', 'Nobody was asked that')
      if (known.state !== 'pending') return { won: false, approval: known }
      const approval: Approval = { ...known, state, by, feedback: feedback ?? null, decidedAtMs: clock.nowMs() }
      kept.set(key, approval)
      void settle(key)
      return { won: true, approval }
    },
    get: async (key) => kept.get(keyOf(key)),
    taker(gate, take) {
      takers.set(gate, take)
      for (const key of kept.keys()) void settle(key)
      return () => {
        if (takers.get(gate) === take) takers.delete(gate)
      }
    },
  }
}
