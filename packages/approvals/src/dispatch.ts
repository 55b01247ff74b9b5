/**
 * Dispatches each decision to the handler of its gate, again and again until the handler has acknowledged it. Only then the
 * decision is confirmed in chats and reported in events.
 */

import { retryDelayMs } from '@sluice/delivery'
import { endsWithin, type JobOutcome, LaneQueue } from '@sluice/kit'
import type { Approval, ApprovalGate, ApprovalKey, Clock, Logger } from '@sluice/sdk'
import { keyText } from './new-approval.ts'

export interface DispatcherOptions {
  readonly clock: Clock
  readonly log: Logger
  read(key: ApprovalKey): Promise<Approval | undefined>
  /** Called after the handler has resolved; records and confirms the decision. */
  acknowledged(approval: Approval): Promise<void>
}

/** Resolves once the gate has taken the decision. A rejection makes the dispatcher try again. */
export type DecisionHandler = (approval: Approval) => Promise<void>

/** The number of handlers that run at the same time. */
const DISPATCHES_MAX = 16
/** The longest wait of a stop for a handler. The next start dispatches its decision again. */
const STOP_MS = 2000

export class Dispatcher {
  readonly #options: DispatcherOptions
  readonly #lanes: LaneQueue
  readonly #handlers = new Map<ApprovalGate, DecisionHandler>()
  /** Every decision in the dispatcher, so that none is in it twice; bounded by the number of approvals. */
  readonly #present = new Set<string>()
  /** Decisions of gates that have no handler yet. */
  readonly #unhandled = new Map<ApprovalGate, ApprovalKey[]>()

  constructor(options: DispatcherOptions) {
    this.#options = options
    this.#lanes = new LaneQueue({ clock: options.clock, permits: () => DISPATCHES_MAX })
  }

  /** Sets the handler of a gate, in place of the one before. Returns a function that removes it. */
  handle(gate: ApprovalGate, handler: DecisionHandler): () => void {
    this.#handlers.set(gate, handler)
    const unhandled = this.#unhandled.get(gate) ?? []
    this.#unhandled.delete(gate)
    for (const key of unhandled) this.#queue(key)
    return () => {
      if (this.#handlers.get(gate) === handler) this.#handlers.delete(gate)
    }
  }

  /** Queues a decision. A decision that is queued already keeps its place. */
  enter({ runId, stepId }: ApprovalKey): void {
    const text = keyText({ runId, stepId })
    if (this.#present.has(text)) return
    this.#present.add(text)
    this.#queue({ runId, stepId })
  }

  /** Starts no more dispatches. Resolves once the running ones have ended, at the latest after `STOP_MS`. */
  async stop(): Promise<void> {
    await endsWithin(this.#lanes.stop(), STOP_MS, this.#options.clock)
  }

  #queue(key: ApprovalKey): void {
    let attempts = 0
    const run = (): Promise<JobOutcome> => this.#attempt(key, ++attempts)
    // A lane of its own: a gate that fails delays no other decision.
    this.#lanes.enter({ lane: null, group: '', run })
  }

  async #attempt(key: ApprovalKey, attempts: number): Promise<JobOutcome> {
    const { clock, log, read, acknowledged } = this.#options
    try {
      const approval = await read(key)
      const isOpen = approval !== undefined && approval.state !== 'pending' && approval.acknowledgedAtMs === null
      if (isOpen) {
        const handler = this.#handlers.get(approval.gate)
        if (!handler) {
          const unhandled = this.#unhandled.get(approval.gate) ?? []
          unhandled.push(key)
          this.#unhandled.set(approval.gate, unhandled)
          return 'done'
        }
        await handler(approval)
        await acknowledged(approval)
      }
      this.#present.delete(keyText(key))
      return 'done'
    } catch (error) {
      log.error('approval dispatch failed', { run_id: key.runId, step_id: key.stepId, attempts, error })
      return { retryAtMs: clock.nowMs() + retryDelayMs(attempts) }
    }
  }
}
