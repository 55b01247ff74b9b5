/** What must hold of every audit log of procedures, whatever happened when: the rules that the machine may never break. */
import { type AuditRow, SOP_ENDED, type SopRun } from '@sluice/sdk'
import { gateBefore } from '../gate-before.ts'

const DECISIONS: readonly string[] = ['approved', 'rejected', 'expired']
const STEP_ENDS: readonly string[] = ['step_completed', 'step_failed', 'step_skipped']
const RUN_ENDS: readonly string[] = ['run_completed', 'run_failed', 'run_cancelled']

/** What is wrong with the records of one run; empty when all is well. */
export function auditProblems(run: SopRun, rows: readonly AuditRow[]): string[] {
  const problems: string[] = []
  const check = (holds: boolean, problem: string) => {
    if (!holds) problems.push(`${run.id} (${run.sop}): ${problem}`)
  }
  const asked = new Set<string>()
  const decidedGates = new Map<string, string>()
  const ended = new Map<number, string>()
  /** The step that began and has neither ended nor been cut. */
  let underWay: number | null = null
  let cutStep: number | null = null
  let end: string | null = null

  for (const [index, { kind, step, by, detail }] of rows.entries()) {
    const gate = String(detail.gate)
    check((kind === 'run_started') === (index === 0), `record ${index + 1} is ${kind}`)
    check(end === null, `${kind} after ${end}`)
    if (kind === 'approval_requested') {
      check(!asked.has(gate), `${gate} is asked twice`)
      asked.add(gate)
    }
    if (DECISIONS.includes(kind)) {
      check(asked.has(gate), `${gate} is ${kind} and was never asked`)
      check(!decidedGates.has(gate), `${gate} is decided twice`)
      check(kind !== 'approved' || by !== 'timeout', `${gate} is approved by a time-out`)
      decidedGates.set(gate, kind)
      if (kind === 'approved' && gate.includes('-again-')) cutStep = null
    }
    if (kind === 'step_started' && step !== null) {
      const definition = run.steps[step - 1]
      const needsApproval = definition && gateBefore(run.mode, run.priority, definition) !== null
      check(!needsApproval || decidedGates.get(`step-${step}`) === 'approved', `step ${step} starts without its approval`)
      check(definition?.kind === 'execute', `step ${step} starts and is a checkpoint`)
      check(cutStep !== step, `step ${step} starts again, and nobody agreed to that`)
      check(
        step === 1 || (ended.has(step - 1) && ended.get(step - 1) !== 'step_failed'),
        `step ${step} starts before the one before it is done`,
      )
      check(underWay === null || (underWay === step && Number(detail.attempt) > 1), `step ${step} starts while ${underWay} is under way`)
      underWay = step
    }
    if (kind === 'step_cut') [cutStep, underWay] = [step, null]
    if (STEP_ENDS.includes(kind) && step !== null) {
      check(!ended.has(step), `step ${step} ends twice`)
      const isCheckpoint = run.steps[step - 1]?.kind === 'checkpoint'
      check(isCheckpoint ? decidedGates.get(`step-${step}`) === 'approved' : underWay === step, `step ${step} ends and was not under way`)
      ended.set(step, kind)
      underWay = null
    }
    if (RUN_ENDS.includes(kind)) {
      end = kind
      const stops = [...decidedGates.values()].filter((decision) => decision !== 'approved')
      check(stops.length === 0 || (kind === 'run_cancelled' && stops.length === 1), `${kind} after ${stops.join()}`)
    }
    if (kind === 'run_completed') {
      check(ended.size === run.steps.length, `completed with ${ended.size} of ${run.steps.length} steps recorded`)
      const isExecuted = ([step, how]: [number, string]) => how === 'step_completed' && run.steps[step - 1]?.kind === 'execute'
      check([...ended].some(isExecuted), 'completed without a step that was carried out')
    }
  }
  check(SOP_ENDED.includes(run.status) === (end !== null), `the run is ${run.status}, the log says ${end ?? 'it goes on'}`)
  check(end === null || end === `run_${run.status}`, `the run is ${run.status}, the log says ${end}`)
  check(run.results.length === ended.size, `${run.results.length} results, ${ended.size} in the log`)
  return problems
}
