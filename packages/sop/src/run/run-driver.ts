/**
 * Carries one unfinished run from gate to step to end. Each run has a driver of its own, so a run that hangs delays no other run.
 * The driver of a run that waits for a person holds no timer.
 */
import { AppError, errorText, isLeaseLost, type SopRun } from '@sluice/sdk'
import { carryOutByAgent, STEP_OWNER } from './agent-step.ts'
import type { RunHome, RunPorts } from './engine-ports.ts'
import { hasEnded, RunRepository } from './run-repository.ts'
import { retryDelayMs, StepExecution } from './step-execution.ts'
import { carryOutByTool } from './tool-step.ts'

/** The set of active runs, as a driver uses it. */
export interface RunOwner {
  /** Opens the approval of the gate at which the run waits. */
  openApproval(run: SopRun): Promise<void>
  /** Removes a run that has ended. */
  remove(runId: string): void
}

/** Rests until `wake`, and again when the run has ended or waits for a person. */
export class RunDriver {
  readonly sop: string
  readonly home: RunHome
  /** The gate whose approval is open; null: none is. */
  openGate: string | null = null
  readonly #runId: string
  readonly #ports: RunPorts
  readonly #runs: RunRepository
  readonly #owner: RunOwner
  /** Present while the driver works on the run. */
  #execution: StepExecution | null = null
  #ended: Promise<void> = Promise.resolve()
  /** True when the run may have changed since the driver read it. */
  #isStale = false
  #isStopped = false

  constructor(run: SopRun, home: RunHome, ports: RunPorts, owner: RunOwner) {
    this.sop = run.sop
    this.home = home
    this.#runId = run.id
    this.#ports = { ...ports, store: home.sops }
    this.#runs = new RunRepository(this.#ports)
    this.#owner = owner
  }

  get isBusy(): boolean {
    return this.#execution !== null
  }

  get isToolRunning(): boolean {
    return this.#execution?.isToolRunning === true
  }

  /** The turn that carries out the run's step; null between turns. */
  get turnId(): string | null {
    return this.#execution?.turnId ?? null
  }

  /** Resolves once the driver rests. Never rejects. */
  get ended(): Promise<void> {
    return this.#ended
  }

  /** Reads the run and carries it on. A driver at work reads the run once more when it is done. */
  wake(): void {
    if (this.#execution) this.#isStale = true
    else this.#ended = this.#carryOn()
  }

  /** Aborts the step in progress, its turn included. */
  abortStep(): void {
    const { turnId } = this
    if (turnId) this.#ports.agent.abort(turnId, STEP_OWNER)
    this.#execution?.abort()
  }

  /** Lets the driver end after the step in progress. */
  stop(): void {
    this.#isStopped = true
  }

  /** Aborts the driver's own waiting; a turn goes on in the agent. */
  abort(): void {
    this.#execution?.abort()
  }

  /** Retries failures with growing delays, so it never rejects. */
  async #carryOn(): Promise<void> {
    for (let failures = 0; !this.#isStopped; ) {
      const execution = new StepExecution()
      this.#execution = execution
      this.#isStale = false
      try {
        const isResting = await this.#advance(execution)
        failures = 0
        if (isResting && !this.#isStale) break
      } catch (error) {
        if (isLeaseLost(error)) break
        if (this.#isStopped || execution.signal.aborted) continue
        this.#logFailure(error)
        await this.#ports.clock.sleep(retryDelayMs(failures++), execution.signal)
      }
    }
    this.#execution = null
  }

  /** Performs the next action of the run. Resolves to true when the run has ended or waits for a person. */
  async #advance(execution: StepExecution): Promise<boolean> {
    const run = await this.#ports.store.get(this.#runId)
    if (!run || hasEnded(run)) {
      if (this.openGate !== null) await this.#withdrawApproval(this.openGate)
      this.#owner.remove(this.#runId)
      return true
    }
    if (run.gate) {
      if (this.openGate !== run.gate.stepId) await this.#owner.openApproval(run)
      return true
    }
    const step = run.steps[run.step - 1]
    if (!step) throw new AppError('internal', `The run ${run.id} is at step ${run.step} of ${run.steps.length}`)
    const carryOut = run.mode === 'deterministic' ? carryOutByTool : carryOutByAgent
    await carryOut({ ports: this.#ports, runs: this.#runs, lease: this.home.lease, run, step, execution })
    return false
  }

  async #withdrawApproval(stepId: string): Promise<void> {
    try {
      await this.#ports.approvals.decide({ runId: this.#runId, stepId }, { state: 'cancelled', by: 'system' })
    } catch (error) {
      if (!(error instanceof AppError && error.code === 'not_found')) throw error
    }
  }

  /** A bug is logged as an error with its cause, a refusal or an outage as a warning. */
  #logFailure(error: unknown): void {
    const isBug = !(error instanceof AppError) || error.code === 'internal'
    const fields = { run: this.#runId, sop: this.sop, reason: errorText(error), ...(isBug && { error }) }
    this.#ports.log[isBug ? 'error' : 'warn']('procedure step failed, retrying', fields)
  }
}
