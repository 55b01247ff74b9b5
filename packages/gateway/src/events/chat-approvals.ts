/** Asks the person at the other end of one chat whether a tool may run. Only an answer in time approves. */
import { randomUUID } from 'node:crypto'
import type { Approver } from '@sluice/agent'
import type { Clock } from '@sluice/sdk'
import type { ChatFrame } from './chat-frames.ts'

const TIMEOUT_SECS = 120
/** Beyond this many open questions the answer is no. */
const PENDING_MAX = 64

export interface ChatApprovals {
  readonly ask: Approver
  /** False if no such question is open. */
  answer(requestId: string, approved: boolean): boolean
}

export function createChatApprovals(clock: Clock, send: (frame: ChatFrame) => void): ChatApprovals {
  const pending = new Map<string, (approved: boolean) => void>()
  return {
    async ask({ tool, summary }, signal) {
      if (signal.aborted || pending.size >= PENDING_MAX) return false
      const requestId = randomUUID()
      const { promise: decision, resolve } = Promise.withResolvers<boolean>()
      const waiting = new AbortController()
      pending.set(requestId, resolve)
      signal.addEventListener('abort', () => resolve(false), { signal: waiting.signal })
      void clock.sleep(TIMEOUT_SECS * 1000, waiting.signal).then(() => resolve(false))
      send({ type: 'approval_request', request_id: requestId, tool, arguments_summary: summary, timeout_secs: TIMEOUT_SECS })
      try {
        return await decision
      } finally {
        pending.delete(requestId)
        waiting.abort()
      }
    },
    answer(requestId, approved) {
      const resolve = pending.get(requestId)
      resolve?.(approved)
      return resolve !== undefined
    },
  }
}
