/** The rules that hold for every audit log of procedures, whatever happened in which order. */
import { type AuditRow, SOP_ENDED, type SopRun } from '@sluice/sdk'
import { gateBefore } from '../run/gates.ts'

const DECISIONS: readonly string[] = ['approved', 'rejected', 'expired']
const STEP_ENDS: readonly string[] = ['step_completed', 'step_failed', 'step_skipped']
const RUN_ENDS: readonly string[] = ['run_completed', 'run_failed', 'run_cancelled', 'run_expired']

/** Returns the broken rules of one run's records; empty when all hold. */
export function auditProblems(run: SopRun, rows: readonly AuditRow[]): string[] {
  const check = new AuditCheck(run)
  for (const [index, row] of rows.entries()) check.next(row, index)
  return check.conclude()
}

/** Reads the records of one run in order. */
class AuditCheck {
  readonly #run: SopRun
  readonly #problems: string[] = []
  readonly #requestedGates = new Set<string>()
  /** The kind of decision by gate. */
  readonly #decisions = new Map<string, string>()
  /** The kind of end by step number. */
  readonly #stepEnds = new Map<number, string>()
  /** The step that has started and has neither ended nor been interrupted. */
  #openStep: number | null = null
  /** The step that was interrupted and may not start again without an approval. */
  #interruptedStep: number | null = null
  #runEnd: string | null = null
  #hasWaited = false

  constructor(run: SopRun) {
    this.#run = run
  }

  next(row: AuditRow, index: number): void {
    const { kind, step } = row
    this.#requireOrder(kind, index)
    this.#require(this.#runEnd === null, `${kind} after ${this.#runEnd}`)
    if (kind === 'approval_requested') this.#approvalRequested(String(row.detail.gate))
    if (DECISIONS.includes(kind)) this.#decided(row)
    if (kind === 'step_started' && step !== null) this.#stepStarted(step, Number(row.detail.attempt))
    if (kind === 'step_cut') [this.#interruptedStep, this.#openStep] = [step, null]
    if (STEP_ENDS.includes(kind) && step !== null) this.#stepEnded(step, kind)
    if (RUN_ENDS.includes(kind)) this.#runEnded(kind)
  }

  /** Compares the log with the run and returns all problems. */
  conclude(): string[] {
    const { status, results } = this.#run
    const end = this.#runEnd
    this.#require(SOP_ENDED.includes(status) === (end !== null), `the run is ${status}, the log says ${end ?? 'unfinished'}`)
    this.#require(end === null || end === `run_${status}`, `the run is ${status}, the log says ${end}`)
    this.#require(results.length === this.#stepEnds.size, `${results.length} results, ${this.#stepEnds.size} in the log`)
    return this.#problems
  }

  /** A run waits at most once, and begins once, before anything else. */
  #requireOrder(kind: string, index: number): void {
    const isFirst = index === 0 || (index === 1 && this.#hasWaited)
    const isAllowed =
      kind === 'run_waiting'
        ? index === 0
        : kind === 'run_started'
          ? isFirst
          : kind === 'run_expired'
            ? index === 1 && this.#hasWaited
            : !isFirst || (this.#hasWaited && kind === 'run_cancelled')
    this.#require(isAllowed, `record ${index + 1} is ${kind}`)
    if (kind === 'run_waiting') this.#hasWaited = true
  }

  #approvalRequested(gate: string): void {
    this.#require(!this.#requestedGates.has(gate), `${gate} is requested twice`)
    this.#requestedGates.add(gate)
  }

  #decided({ kind, by, detail }: AuditRow): void {
    const gate = String(detail.gate)
    this.#require(this.#requestedGates.has(gate), `${gate} is ${kind} but was never requested`)
    this.#require(!this.#decisions.has(gate), `${gate} is decided twice`)
    this.#require(kind !== 'approved' || by !== 'timeout', `${gate} is approved by a timeout`)
    this.#decisions.set(gate, kind)
    if (kind === 'approved' && gate.includes('-again-')) this.#interruptedStep = null
  }

  #stepStarted(step: number, attempt: number): void {
    const definition = this.#run.steps[step - 1]
    const needsApproval = definition && gateBefore(this.#run.mode, this.#run.priority, definition) !== null
    const previousEnd = this.#stepEnds.get(step - 1)
    const openStep = this.#openStep
    this.#require(!needsApproval || this.#isApproved(step), `step ${step} starts without its approval`)
    this.#require(definition?.kind === 'execute', `step ${step} starts and is a checkpoint`)
    this.#require(this.#interruptedStep !== step, `step ${step} starts again without an approval`)
    this.#require(
      step === 1 || (previousEnd !== undefined && previousEnd !== 'step_failed'),
      `step ${step} starts before the previous step has ended`,
    )
    this.#require(openStep === null || (openStep === step && attempt > 1), `step ${step} starts while step ${openStep} is in progress`)
    this.#openStep = step
  }

  #stepEnded(step: number, kind: string): void {
    this.#require(!this.#stepEnds.has(step), `step ${step} ends twice`)
    const isCheckpoint = this.#run.steps[step - 1]?.kind === 'checkpoint'
    this.#require(isCheckpoint ? this.#isApproved(step) : this.#openStep === step, `step ${step} ends but was not in progress`)
    this.#stepEnds.set(step, kind)
    this.#openStep = null
  }

  #runEnded(kind: string): void {
    this.#runEnd = kind
    const refusals = [...this.#decisions.values()].filter((decision) => decision !== 'approved')
    this.#require(refusals.length === 0 || (kind === 'run_cancelled' && refusals.length === 1), `${kind} after ${refusals.join()}`)
    if (kind !== 'run_completed') return
    const { steps } = this.#run
    this.#require(this.#stepEnds.size === steps.length, `completed with ${this.#stepEnds.size} of ${steps.length} steps recorded`)
    const isExecuted = ([step, end]: [number, string]) => end === 'step_completed' && steps[step - 1]?.kind === 'execute'
    this.#require([...this.#stepEnds].some(isExecuted), 'completed without an executed step')
  }

  #isApproved(step: number): boolean {
    return this.#decisions.get(`step-${step}`) === 'approved'
  }

  #require(holds: boolean, problem: string): void {
    if (!holds) this.#problems.push(`${this.#run.id} (${this.#run.sop}): ${problem}`)
  }
}
