/** An approval registry in memory: it keeps approvals, decides each once and dispatches the decision. It sends no prompts. */
import { AppError, type Approval, type ApprovalGate, type ApprovalKey, type Approvals, type Clock } from '@sluice/sdk'

/** An approval registry whose approvals a test can list. */
export interface MemoryApprovals extends Approvals {
  /** Every approval, oldest first. */
  all(): readonly Approval[]
}

const keyOf = ({ runId, stepId }: ApprovalKey): string => `${runId} ${stepId}`
const RETRY_MS = 1000

/** `kept` holds what survives a restart: pass the same map to the registry of the next run. */
export function memoryApprovals(clock: Clock, kept: Map<string, Approval> = new Map()): MemoryApprovals {
  const handlers = new Map<ApprovalGate, (approval: Approval) => Promise<void>>()

  /** Calls the gate's handler until it accepts the decision or the gate has no handler. */
  async function dispatch(key: string): Promise<void> {
    for (;;) {
      const approval = kept.get(key)
      const handle = approval && handlers.get(approval.gate)
      if (!handle || approval.state === 'pending' || approval.acknowledgedAtMs !== null) return
      try {
        await handle(approval)
        kept.set(key, { ...approval, acknowledgedAtMs: clock.nowMs() })
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
      decider = 'asker',
      standing = null,
      sources = [],
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
        decider,
        standing,
        sources,
        approveKeywords,
        rejectKeywords,
        createdAtMs: nowMs,
        expiresAtMs: timeoutSecs === 0 ? null : nowMs + timeoutSecs * 1000,
        token: `token-${kept.size}`,
        state: 'pending',
        by: null,
        byStanding: null,
        feedback: null,
        decidedAtMs: null,
        acknowledgedAtMs: null,
        prompts: [],
      }
      kept.set(key, approval)
      return { opened: true, approval, asked: [] }
    },
    async decide(keyed, { state, by, feedback }) {
      const key = keyOf(keyed)
      const known = kept.get(key)
      if (!known) throw new AppError('not_found', `There is no approval for step '${keyed.stepId}' of run '${keyed.runId}'`)
      if (known.state !== 'pending') return { won: false, approval: known }
      const approval: Approval = { ...known, state, by, feedback: feedback ?? null, decidedAtMs: clock.nowMs() }
      kept.set(key, approval)
      void dispatch(key)
      return { won: true, approval }
    },
    get: async (key) => kept.get(keyOf(key)),
    onDecision(gate, handle) {
      handlers.set(gate, handle)
      for (const key of kept.keys()) void dispatch(key)
      return () => {
        if (handlers.get(gate) === handle) handlers.delete(gate)
      }
    },
  }
}
