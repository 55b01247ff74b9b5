/** Gives each decision to the gate that waits for it, again until it has taken it; only then the decision is confirmed and told (§3). */

import { Fifo, retryDelayMs } from '@sluice/delivery'
import type { Approval, ApprovalGate, ApprovalKey, Clock, Logger } from '@sluice/sdk'
import { keyText } from './new-approval.ts'

export interface SettlerDeps {
  readonly clock: Clock
  readonly log: Logger
  read(key: ApprovalKey): Promise<Approval | undefined>
  /** The gate has taken it. */
  settled(approval: Approval): Promise<void>
}

/** Gates at work at once. */
const SETTLING_MAX = 16
/** A gate that takes longer is not waited for: it is asked again after the next start. */
const STOP_MS = 2000

export class Settler {
  readonly #deps: SettlerDeps
  readonly #takers = new Map<ApprovalGate, (approval: Approval) => Promise<void>>()
  /** Every decision that is here, so that none is here twice; bounded by the approvals there are. */
  readonly #keys = new Map<string, ApprovalKey>()
  readonly #ready = new Fifo<string>()
  /** Decisions nobody takes yet. */
  readonly #untaken = new Map<ApprovalGate, string[]>()
  readonly #stop = new AbortController()
  #running = 0
  #idle = Promise.withResolvers<void>()

  constructor(deps: SettlerDeps) {
    this.#deps = deps
  }

  /** Replaces the taker of the gate. */
  taker(gate: ApprovalGate, take: (approval: Approval) => Promise<void>): () => void {
    this.#takers.set(gate, take)
    const waiting = this.#untaken.get(gate) ?? []
    this.#untaken.delete(gate)
    for (const key of waiting) this.#ready.push(key)
    this.#fill()
    return () => {
      if (this.#takers.get(gate) === take) this.#takers.delete(gate)
    }
  }

  /** Takes up a decision; one that is here already stays where it is. */
  enter({ runId, stepId }: ApprovalKey): void {
    const text = keyText({ runId, stepId })
    if (this.#keys.has(text)) return
    this.#keys.set(text, { runId, stepId })
    this.#ready.push(text)
    this.#fill()
  }

  /** Starts nothing more; resolves once what runs has ended, or does not end. */
  async stop(): Promise<void> {
    this.#stop.abort()
    const enough = new AbortController()
    if (this.#running > 0) await Promise.race([this.#idle.promise, this.#deps.clock.sleep(STOP_MS, enough.signal)])
    enough.abort()
  }

  #fill(): void {
    while (!this.#stop.signal.aborted && this.#running < SETTLING_MAX) {
      const text = this.#ready.shift()
      const key = text === undefined ? undefined : this.#keys.get(text)
      if (text === undefined || !key) return
      void this.#run(text, key, 1)
    }
  }

  async #run(text: string, key: ApprovalKey, attempt: number): Promise<void> {
    this.#running += 1
    const isDone = await this.#attempt(text, key)
    this.#running -= 1
    if (isDone) this.#keys.delete(text)
    else if (isDone === undefined) void this.#again(text, key, attempt)
    if (this.#running === 0 && this.#stop.signal.aborted) this.#idle.resolve()
    this.#fill()
  }

  /** Elsewhere meanwhile: a gate that fails keeps no other waiting. */
  async #again(text: string, key: ApprovalKey, attempt: number): Promise<void> {
    await this.#deps.clock.sleep(retryDelayMs(attempt), this.#stop.signal)
    if (!this.#stop.signal.aborted) await this.#run(text, key, attempt + 1)
  }

  /** True once the gate has taken it; false: it waits for a taker; undefined: it failed. */
  async #attempt(text: string, key: ApprovalKey): Promise<boolean | undefined> {
    try {
      const approval = await this.#deps.read(key)
      if (!approval || approval.state === 'pending' || approval.settledAtMs !== null) return true
      const take = this.#takers.get(approval.gate)
      if (!take) {
        const waiting = this.#untaken.get(approval.gate) ?? []
        waiting.push(text)
        this.#untaken.set(approval.gate, waiting)
        return false
      }
      await take(approval)
      await this.#deps.settled(approval)
      return true
    } catch (error) {
      this.#deps.log.error('a decision could not be taken; it is tried again', { run_id: key.runId, step_id: key.stepId, error })
      return undefined
    }
  }
}
