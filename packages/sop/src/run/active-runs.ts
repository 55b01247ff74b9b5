/** The unfinished runs that this process carries out, each by its own driver. The store's limit on unfinished runs bounds them. */
import { endsWithin } from '@sluice/kit'
import { Homes } from '@sluice/ownership'
import { AppError, type Approval, type SopRun, shardOf } from '@sluice/sdk'
import { approvalRequestOf } from './approval-request.ts'
import type { RunHome, RunPorts } from './engine-ports.ts'
import type { SopInput } from './machine.ts'
import { RunDriver, type RunOwner } from './run-driver.ts'
import { hasEnded, type RunRepository } from './run-repository.ts'

/** Drivers have this long to end after their steps were aborted. */
const ABORT_GRACE_MS = 1000

export class ActiveRuns implements RunOwner {
  readonly #ports: RunPorts
  readonly #runs: RunRepository
  readonly #drivers = new Map<string, RunDriver>()
  /** The shards whose runs this process carries out. */
  readonly homes = new Homes<RunHome>()
  #isStopped = false

  constructor(ports: RunPorts, runs: RunRepository) {
    this.#ports = ports
    this.#runs = runs
  }

  /** Carries out runs of these shards from now on. Runs of other shards are left to their owner. */
  take(home: RunHome): void {
    this.homes.add(home, () => this.#drop(home))
  }

  /** Begins no more steps in these shards. Resolves once tool calls under way have ended; turns go on without their driver. */
  async leave(home: RunHome): Promise<void> {
    this.homes.delete(home)
    const drivers = [...this.#drivers.values()].filter((driver) => driver.home === home)
    for (const driver of drivers) {
      driver.stop()
      if (!driver.isToolRunning) driver.abort()
    }
    await Promise.all(drivers.map(({ ended }) => ended))
    for (const [id, driver] of this.#drivers) if (driver.home === home) this.#drivers.delete(id)
  }

  /** Adds an unfinished run, or makes the driver of a known one read it again. */
  wake(run: SopRun): void {
    let driver = this.#drivers.get(run.id)
    if (!driver) {
      const home = this.homes.of(shardOf(run.id))
      if (this.#isStopped || !home || hasEnded(run) || run.status === 'waiting') return
      driver = new RunDriver(run, home, this.#ports, this)
      this.#drivers.set(run.id, driver)
    }
    if (!this.#isStopped) driver.wake()
  }

  /** Aborts the step of a run that has ended. */
  release(runId: string): void {
    const driver = this.#drivers.get(runId)
    driver?.abortStep()
    if (!this.#isStopped) driver?.wake()
  }

  remove(runId: string): void {
    this.#drivers.delete(runId)
  }

  /** Returns whether the run has a driver that is at work or waits at the same gate as the stored run. */
  isUpToDate({ id, gate }: SopRun): boolean {
    const driver = this.#drivers.get(id)
    return driver !== undefined && (driver.isBusy || driver.openGate === (gate?.stepId ?? null))
  }

  ids(): readonly string[] {
    return [...this.#drivers.keys()]
  }

  /** Returns the run that a turn carries out. In deterministic mode, tool calls name the run itself as their turn. */
  runOfTurn(turnId: string): string | undefined {
    if (this.#drivers.has(turnId)) return turnId
    for (const [id, driver] of this.#drivers) if (driver.turnId === turnId) return id
    return undefined
  }

  /** Returns the number of unfinished runs of each procedure that has any. */
  countsBySop(): ReadonlyMap<string, number> {
    const counts = new Map<string, number>()
    for (const { sop } of this.#drivers.values()) counts.set(sop, (counts.get(sop) ?? 0) + 1)
    return counts
  }

  /** Applies the decision of an approval. A decision for a run that has moved on is dropped. */
  async applyDecision(approval: Approval): Promise<void> {
    const { runId, stepId } = approval
    try {
      const run = await this.#runs.apply(runId, inputOf(approval))
      const driver = this.#drivers.get(runId)
      if (driver?.openGate === stepId) driver.openGate = null
      this.wake(run)
    } catch (error) {
      if (!(error instanceof AppError && (error.code === 'conflict' || error.code === 'not_found'))) throw error
      this.#ports.log.debug('decision dropped, the run has moved on', { run: runId, step: stepId, reason: error.message })
      if (!this.#isStopped) this.#drivers.get(runId)?.wake()
    }
  }

  /** Opens the approval of the gate at which the run waits, and applies its decision if there already is one. Idempotent. */
  async openApproval(run: SopRun): Promise<void> {
    const { approvals, config, actorName } = this.#ports
    if (!run.gate) return
    const starter = await actorName(run.event.by)
    const { approval } = await approvals.open(approvalRequestOf(run, run.gate, { starter, timeoutSecs: config().approval_timeout_secs }))
    if (approval.state !== 'pending') return this.applyDecision(approval)
    const driver = this.#drivers.get(run.id)
    if (driver) driver.openGate = run.gate.stepId
  }

  /** Stops all drivers. Tool calls in progress have `timeoutMs` to end; everything else is aborted at once. */
  async stop(timeoutMs: number): Promise<void> {
    this.#isStopped = true
    const drivers = [...this.#drivers.values()]
    for (const driver of drivers) driver.stop()
    const busy = drivers.filter(({ isBusy }) => isBusy)
    for (const driver of busy) if (!driver.isToolRunning) driver.abort()
    await this.#untilEnded(busy, timeoutMs)
    for (const driver of busy) driver.abort()
    await this.#untilEnded(busy, ABORT_GRACE_MS)
  }

  /** Ends the drivers of lost shards without a record. The next owner continues their runs. */
  #drop(home: RunHome): void {
    for (const [id, driver] of this.#drivers) {
      if (driver.home !== home) continue
      this.#drivers.delete(id)
      driver.stop()
      driver.abort()
    }
  }

  async #untilEnded(drivers: readonly RunDriver[], timeoutMs: number): Promise<void> {
    await endsWithin(Promise.all(drivers.map(({ ended }) => ended)), timeoutMs, this.#ports.clock)
  }
}

function inputOf({ state, stepId, by, feedback }: Approval): SopInput {
  const decider = by ?? 'system'
  switch (state) {
    case 'approved':
      return { type: 'approve', gate: stepId, by: decider, feedback }
    case 'rejected':
      return { type: 'reject', gate: stepId, by: decider, feedback }
    case 'expired':
      return { type: 'expire', gate: stepId }
    case 'cancelled':
      return { type: 'cancel', gate: stepId, by: decider, reason: 'The question was withdrawn' }
    case 'pending':
      throw new AppError('internal', `The approval ${stepId} of the run has not been decided`)
  }
}
