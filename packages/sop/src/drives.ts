/**
 * The runs that have not ended, each driven by itself from gate to step to end, so that one that hangs holds up none. One that
 * waits for a person is two short texts and no timer.
 */
import { AppError, type Approval, errorText, type SopRun } from '@sluice/sdk'
import { STEP_OWNER, workByAgent } from './agent-step.ts'
import { workByTool } from './deterministic.ts'
import { type Drive, hasEnded, newDrive, pauseMs } from './drive.ts'
import type { SopEngineDeps } from './engine-deps.ts'
import type { SopInput } from './machine.ts'
import { questionOf } from './question.ts'
import type { RunBooks } from './run-books.ts'

/** Bounded by what the store lets run at once. */
interface LiveRun {
  readonly sop: string
  /** The gate people were asked about. */
  asked: string | null
  drive: Drive | null
}

/** What letting go of steps may take once their calls are cut. */
const SETTLE_MS = 1000

export class Drives {
  readonly #deps: SopEngineDeps
  readonly #books: RunBooks
  readonly #live = new Map<string, LiveRun>()
  #isOn = false

  constructor(deps: SopEngineDeps, books: RunBooks) {
    this.#deps = deps
    this.#books = books
  }

  /** From now on, runs are driven. */
  start(): void {
    this.#isOn = true
  }

  /** Takes the run up, or has it looked at again. */
  go(run: Pick<SopRun, 'id' | 'sop' | 'status'>): void {
    if (!this.#isOn) return
    let live = this.#live.get(run.id)
    if (!live) {
      if (hasEnded(run)) return
      live = { sop: run.sop, asked: null, drive: null }
      this.#live.set(run.id, live)
    }
    this.#look(run.id, live)
  }

  /** Lets go of the step of a run that has ended. */
  end(runId: string): void {
    const live = this.#live.get(runId)
    if (!live) return
    if (live.drive?.turnId) this.#deps.agent.abort(live.drive.turnId, STEP_OWNER)
    live.drive?.cut.abort()
    if (this.#isOn) this.#look(runId, live)
  }

  /** Whether the run is taken up, and waits where the store says it does. */
  knows({ id, gate }: SopRun): boolean {
    const live = this.#live.get(id)
    return live !== undefined && (live.drive !== null || live.asked === (gate?.stepId ?? null))
  }

  ids(): readonly string[] {
    return [...this.#live.keys()]
  }

  /** The run that a turn, or a tool call that stands for one, works for. */
  workingFor(turn: string): string | undefined {
    if (this.#live.has(turn)) return turn
    for (const [id, { drive }] of this.#live) if (drive?.turnId === turn) return id
    return undefined
  }

  /** How many there are of each procedure that has any. */
  counts(): ReadonlyMap<string, number> {
    const counts = new Map<string, number>()
    for (const { sop } of this.#live.values()) counts.set(sop, (counts.get(sop) ?? 0) + 1)
    return counts
  }

  /** Takes a decision of people. A run that has moved on needs none. */
  async take(approval: Approval): Promise<void> {
    try {
      const { after } = await this.#books.change(approval.runId, inputOf(approval))
      const live = this.#live.get(approval.runId)
      if (live?.asked === approval.stepId) live.asked = null
      this.go(after)
    } catch (error) {
      if (!(error instanceof AppError && (error.code === 'conflict' || error.code === 'not_found'))) throw error
      this.#deps.log.debug('decision came too late', { run: approval.runId, step: approval.stepId, reason: error.message })
      const live = this.#live.get(approval.runId)
      if (live && this.#isOn) this.#look(approval.runId, live)
    }
  }

  /** Asks people about the gate a run waits at; once is enough. */
  async ask(run: SopRun): Promise<void> {
    const { approvals, config } = this.#deps
    if (!run.gate) return
    const { approval } = await approvals.open(questionOf(run, run.gate, config().approval_timeout_secs))
    if (approval.state !== 'pending') return this.take(approval)
    const live = this.#live.get(run.id)
    if (live) live.asked = run.gate.stepId
  }

  /** Drives nothing more. Tool calls under way have `timeoutMs` to end. */
  async stop(timeoutMs: number): Promise<void> {
    this.#isOn = false
    const drives = [...this.#live.values()].flatMap(({ drive }) => drive ?? [])
    for (const drive of drives) if (!drive.isCalling) drive.cut.abort()
    await this.#settled(drives, timeoutMs)
    for (const drive of drives) drive.cut.abort()
    await this.#settled(drives, SETTLE_MS)
  }

  #look(id: string, live: LiveRun): void {
    if (live.drive) {
      live.drive.again = true
      return
    }
    live.drive = newDrive()
    live.drive.ended = this.#drive(id, live, live.drive)
  }

  async #settled(drives: readonly Drive[], timeoutMs: number): Promise<void> {
    const enough = new AbortController()
    await Promise.race([Promise.all(drives.map(({ ended }) => ended)), this.#deps.clock.sleep(timeoutMs, enough.signal)])
    enough.abort()
  }

  /** Never rejects: what fails is tried again, at growing distances. */
  async #drive(id: string, live: LiveRun, drive: Drive): Promise<void> {
    for (let failures = 0; this.#isOn; ) {
      if (drive.cut.signal.aborted) drive.cut = new AbortController()
      drive.again = false
      try {
        const isResting = await this.#bringOn(id, live, drive)
        failures = 0
        if (isResting && !drive.again) break
      } catch (error) {
        if (!this.#isOn || drive.cut.signal.aborted) continue
        const isOurs = !(error instanceof AppError) || error.code === 'internal'
        this.#deps.log[isOurs ? 'error' : 'warn']('procedure held up', {
          run: id,
          sop: live.sop,
          reason: errorText(error),
          ...(isOurs && { error }),
        })
        await this.#deps.clock.sleep(pauseMs(failures++), drive.cut.signal)
      }
    }
    live.drive = null
  }

  /** One step of the way; true: nothing is left to do until somebody says so. */
  async #bringOn(id: string, live: LiveRun, drive: Drive): Promise<boolean> {
    const run = await this.#deps.store.get(id)
    if (!run || hasEnded(run)) {
      if (live.asked !== null) await this.#withdraw(id, live.asked)
      this.#live.delete(id)
      return true
    }
    if (run.gate) {
      if (live.asked !== run.gate.stepId) await this.ask(run)
      return true
    }
    const step = run.steps[run.step - 1]
    if (!step) throw new AppError('internal', `The run ${id} is at step ${run.step} of ${run.steps.length}`)
    await (run.mode === 'deterministic' ? workByTool : workByAgent)(this.#deps, this.#books, run, step, drive)
    return false
  }

  /** Nobody needs to answer any more. */
  async #withdraw(runId: string, stepId: string): Promise<void> {
    try {
      await this.#deps.approvals.decide({ runId, stepId }, { state: 'cancelled', by: 'system' })
    } catch (error) {
      if (!(error instanceof AppError && error.code === 'not_found')) throw error
    }
  }
}

function inputOf({ state, stepId, by, feedback }: Approval): SopInput {
  const who = by ?? 'system'
  switch (state) {
    case 'approved':
      return { type: 'approve', gate: stepId, by: who, feedback }
    case 'rejected':
      return { type: 'reject', gate: stepId, by: who, feedback }
    case 'expired':
      return { type: 'expire', gate: stepId }
    case 'cancelled':
      return { type: 'cancel', gate: stepId, by: who, reason: 'The question was withdrawn' }
    case 'pending':
      throw new AppError('internal', `The approval ${stepId} of the run has not been decided`)
  }
}
