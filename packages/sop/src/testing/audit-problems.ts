/** The rules that hold for every audit log of procedures, whatever happened in which order. */
import { type AuditRow, SOP_ENDED, type SopRun } from '@sluice/sdk'
import { gateBefore } from '../gates.ts'

const DECISIONS: readonly string[] = ['approved', 'rejected', 'expired']
const STEP_ENDS: readonly string[] = ['step_completed', 'step_failed', 'step_skipped']
const RUN_ENDS: readonly string[] = ['run_completed', 'run_failed', 'run_cancelled']

/** Returns the broken rules of one run's records; empty when all hold. */
export function auditProblems(run: SopRun, rows: readonly AuditRow[]): string[] {
  const problems: string[] = []
  const check = (holds: boolean, problem: string) => {
    if (!holds) problems.push(`${run.id} (${run.sop}): ${problem}`)
  }
  const requested = new Set<string>()
  const decidedGates = new Map<string, string>()
  const ended = new Map<number, string>()
  /** The step that has started and has neither ended nor been interrupted. */
  let openStep: number | null = null
  let interruptedStep: number | null = null
  let end: string | null = null

  for (const [index, { kind, step, by, detail }] of rows.entries()) {
    const gate = String(detail.gate)
    check((kind === 'run_started') === (index === 0), `record ${index + 1} is ${kind}`)
    check(end === null, `${kind} after ${end}`)
    if (kind === 'approval_requested') {
      check(!requested.has(gate), `${gate} is requested twice`)
      requested.add(gate)
    }
    if (DECISIONS.includes(kind)) {
      check(requested.has(gate), `${gate} is ${kind} but was never requested`)
      check(!decidedGates.has(gate), `${gate} is decided twice`)
      check(kind !== 'approved' || by !== 'timeout', `${gate} is approved by a timeout`)
      decidedGates.set(gate, kind)
      if (kind === 'approved' && gate.includes('-again-')) interruptedStep = null
    }
    if (kind === 'step_started' && step !== null) {
      const definition = run.steps[step - 1]
      const needsApproval = definition && gateBefore(run.mode, run.priority, definition) !== null
      check(!needsApproval || decidedGates.get(`step-${step}`) === 'approved', `step ${step} starts without its approval`)
      check(definition?.kind === 'execute', `step ${step} starts and is a checkpoint`)
      check(interruptedStep !== step, `step ${step} starts again without an approval`)
      check(
        step === 1 || (ended.has(step - 1) && ended.get(step - 1) !== 'step_failed'),
        `step ${step} starts before the previous step has ended`,
      )
      check(
        openStep === null || (openStep === step && Number(detail.attempt) > 1),
        `step ${step} starts while step ${openStep} is in progress`,
      )
      openStep = step
    }
    if (kind === 'step_cut') [interruptedStep, openStep] = [step, null]
    if (STEP_ENDS.includes(kind) && step !== null) {
      check(!ended.has(step), `step ${step} ends twice`)
      const isCheckpoint = run.steps[step - 1]?.kind === 'checkpoint'
      check(isCheckpoint ? decidedGates.get(`step-${step}`) === 'approved' : openStep === step, `step ${step} ends but was not in progress`)
      ended.set(step, kind)
      openStep = null
    }
    if (RUN_ENDS.includes(kind)) {
      end = kind
      const stops = [...decidedGates.values()].filter((decision) => decision !== 'approved')
      check(stops.length === 0 || (kind === 'run_cancelled' && stops.length === 1), `${kind} after ${stops.join()}`)
    }
    if (kind === 'run_completed') {
      check(ended.size === run.steps.length, `completed with ${ended.size} of ${run.steps.length} steps recorded`)
      const isExecuted = ([step, how]: [number, string]) => how === 'step_completed' && run.steps[step - 1]?.kind === 'execute'
      check([...ended].some(isExecuted), 'completed without an executed step')
    }
  }
  check(SOP_ENDED.includes(run.status) === (end !== null), `the run is ${run.status}, the log says ${end ?? 'unfinished'}`)
  check(end === null || end === `run_${run.status}`, `the run is ${run.status}, the log says ${end}`)
  check(run.results.length === ended.size, `${run.results.length} results, ${ended.size} in the log`)
  return problems
}
