/**
 * The state machine of a run, and the only place where a run changes. It is pure: the same run and input always give the same
 * result. A refused input changes nothing.
 */
import type { SopRun, SopRunStatus, SopStepResult } from '@sluice/sdk'
import { brief, ENGINE, runRecord, stepRecord } from './audit-record.ts'
import { begin } from './begin-run.ts'
import { arriveAt, openGate, type Transition } from './gates.ts'

/** `gate`, `step` and `turnId` name the subject of an input. An input about an earlier gate, step or turn is refused. */
export type SopInput =
  /** A slot is free for a waiting run. */
  | { readonly type: 'begin' }
  /** A waiting run got no slot in time. */
  | { readonly type: 'tooOld'; readonly hours: number }
  | { readonly type: 'approve' | 'reject'; readonly gate: string; readonly by: string; readonly feedback: string | null }
  | { readonly type: 'expire'; readonly gate: string }
  /** Stored before the agent gets the turn (`turnId`), or before a tool with side effects runs (null). */
  | { readonly type: 'attemptStarted'; readonly step: number; readonly turnId: string | null }
  /** The agent's report about its step. It takes effect when the turn ends. */
  | { readonly type: 'report'; readonly turnId: string; readonly status: SopStepResult['status']; readonly output: string }
  | ({ readonly type: 'attemptEnded'; readonly step: number; readonly turnId: string | null } & AttemptEnd)
  /** The turn failed before it could act. `nextTurnId` is the turn of the next attempt. */
  | { readonly type: 'retry'; readonly turnId: string; readonly nextTurnId: string; readonly reason: string }
  /** The attempt may or may not have acted, so a person decides whether it runs again. */
  | { readonly type: 'interrupted'; readonly step: number; readonly turnId: string | null; readonly reason: string }
  /** Cancels the run; with `gate`, only while the run waits at that gate. */
  | { readonly type: 'cancel'; readonly gate?: string; readonly by: string; readonly reason: string }

/** The outcome of an attempt. */
export interface AttemptEnd {
  readonly status: SopStepResult['status']
  readonly output: string
  readonly value?: unknown
  /** The start of a read-only call, which is not stored when it begins. */
  readonly startedAtMs?: number
}

const WHILE_WAITING = ['approve', 'reject', 'expire', 'cancel'] as const

/** The inputs that each status allows. All others are refused. */
export const ALLOWED: Readonly<Record<SopRunStatus, readonly SopInput['type'][]>> = {
  waiting: ['begin', 'tooOld', 'cancel'],
  running: ['attemptStarted', 'report', 'attemptEnded', 'retry', 'interrupted', 'cancel'],
  waiting_approval: WHILE_WAITING,
  paused_checkpoint: WHILE_WAITING,
  completed: [],
  failed: [],
  cancelled: [],
  expired: [],
}

const TITLES: Readonly<Record<SopInput['type'], string>> = {
  begin: 'begin',
  tooOld: 'expire while it waits for a slot',
  approve: 'be approved',
  reject: 'be rejected',
  expire: 'expire',
  attemptStarted: 'begin its step',
  report: 'take a report',
  attemptEnded: 'end its step',
  retry: 'repeat its step',
  interrupted: 'be interrupted',
  cancel: 'be cancelled',
}

const stale = (run: SopRun, why: string): { readonly refused: string } => ({ refused: `The run ${run.id} has moved on: ${why}` })

/** Returns the run after `input`, or the sentence that says why the input is refused. */
export function transition(run: SopRun, input: SopInput, nowMs: number): Transition | { readonly refused: string } {
  if (!ALLOWED[run.status].includes(input.type)) {
    return { refused: `The run ${run.id} cannot ${TITLES[input.type]}: it is ${run.status}` }
  }
  switch (input.type) {
    case 'begin':
      return begin(run, nowMs)
    case 'tooOld':
      return endRun(run, 'expired', { by: ENGINE, reason: `It waited ${input.hours} h for a free slot: ${run.reason}`, nowMs })
    case 'approve':
    case 'reject':
    case 'expire':
      return run.gate?.stepId === input.gate ? decideGate(run, input, nowMs) : stale(run, `it does not wait at ${input.gate}`)
    case 'cancel':
      if (input.gate !== undefined && run.gate?.stepId !== input.gate) return stale(run, `it does not wait at ${input.gate}`)
      return endRun(run, 'cancelled', { by: input.by, reason: input.reason, nowMs })
    case 'attemptStarted':
      if (run.step !== input.step) return stale(run, `it is at step ${run.step}`)
      if (run.attempt) return stale(run, 'its step is in progress')
      return startAttempt(run, { turnId: input.turnId, number: 1, startedAtMs: nowMs }, null)
    case 'report':
      return run.attempt?.turnId === input.turnId
        ? storeReport(run, input, nowMs)
        : stale(run, 'another turn carries out its step, or none does')
    case 'retry':
      if (run.attempt?.turnId !== input.turnId) return stale(run, 'another turn carries out its step')
      return startAttempt(run, nextAttempt(run.attempt, input.nextTurnId, nowMs), input.reason)
    case 'interrupted': {
      if (run.step !== input.step || run.attempt?.turnId !== input.turnId) return stale(run, 'another attempt is in progress')
      const { run: waiting, audit } = openGate(run, 'again', nowMs)
      const record = stepRecord(run, 'step_cut', nowMs, { reason: input.reason, detail: attemptDetail(run) })
      return { run: waiting, audit: [record, ...audit] }
    }
    case 'attemptEnded':
      if (run.step !== input.step || (run.attempt?.turnId ?? null) !== input.turnId) return stale(run, 'another attempt is in progress')
      return endAttempt(run, input, nowMs)
  }
}

type Decision = Extract<SopInput, { type: 'approve' | 'reject' | 'expire' }>

function decideGate(run: SopRun, input: Decision, nowMs: number): Transition {
  const detail = { gate: input.gate }
  if (input.type === 'expire') {
    const reason = 'No answer arrived in time'
    const { run: after, audit } = endRun(run, 'cancelled', { by: ENGINE, reason: `${reason}: step ${run.step} was not approved`, nowMs })
    return { run: after, audit: [stepRecord(run, 'expired', nowMs, { by: 'timeout', reason, detail }), ...audit] }
  }
  const { by, feedback } = input
  const record = stepRecord(run, input.type === 'approve' ? 'approved' : 'rejected', nowMs, { by, reason: feedback, detail })
  if (input.type === 'reject') {
    const { run: after, audit } = endRun(run, 'cancelled', { by, reason: `Rejected by ${by}${feedback ? `: ${feedback}` : ''}`, nowMs })
    return { run: after, audit: [record, ...audit] }
  }
  if (run.status === 'paused_checkpoint') {
    const output = `Approved by ${by}${feedback ? `: ${feedback}` : ''}`
    const { run: after, audit } = endStep(run, { status: 'completed', output, startedAtMs: run.gate?.sinceMs ?? nowMs }, nowMs)
    return { run: after, audit: [record, ...audit] }
  }
  return { run: { ...run, status: 'running', gate: null }, audit: [record] }
}

type Attempt = NonNullable<SopRun['attempt']>

const nextAttempt = ({ number, startedAtMs, firstStartedAtMs = startedAtMs }: Attempt, turnId: string, nowMs: number): Attempt => ({
  turnId,
  number: number + 1,
  startedAtMs: nowMs,
  firstStartedAtMs,
})

function startAttempt(run: SopRun, attempt: Attempt, reason: string | null): Transition {
  const after: SopRun = { ...run, attempt, report: null }
  return { run: after, audit: [stepRecord(after, 'step_started', attempt.startedAtMs, { reason, detail: attemptDetail(after) })] }
}

function storeReport(run: SopRun, { turnId, status, output }: Extract<SopInput, { type: 'report' }>, nowMs: number): Transition {
  const record = stepRecord(run, 'reported', nowMs, { by: `turn:${turnId}`, reason: output, detail: { status } })
  return { run: { ...run, report: { status, output } }, audit: [record] }
}

/** A read-only call was not stored when it began, so its start is recorded together with its end. */
function endAttempt(run: SopRun, end: AttemptEnd, nowMs: number): Transition {
  const startedAtMs = run.attempt?.startedAtMs ?? end.startedAtMs ?? nowMs
  const { run: after, audit } = endStep(run, { ...end, startedAtMs }, nowMs)
  return run.attempt ? { run: after, audit } : { run: after, audit: [stepRecord(run, 'step_started', startedAtMs), ...audit] }
}

/** Adds the result of the step and goes on to the next step or to the end of the run. */
function endStep(run: SopRun, end: AttemptEnd & { readonly startedAtMs: number }, nowMs: number): Transition {
  const { status, output, value, startedAtMs } = end
  const result: SopStepResult = { step: run.step, status, output, ...(value !== undefined && { value }), startedAtMs, endedAtMs: nowMs }
  const record = stepRecord(run, `step_${status}`, nowMs, { reason: output, detail: attemptDetail(run) })
  const after: SopRun = { ...run, gate: null, attempt: null, report: null, results: [...run.results, result] }
  const next = status === 'failed' ? failRun(after, output, nowMs) : goOn(after, nowMs)
  return { run: next.run, audit: [record, ...next.audit] }
}

const failRun = (run: SopRun, output: string, nowMs: number): Transition =>
  endRun(run, 'failed', { by: ENGINE, reason: `Step ${run.step} failed: ${output}`, nowMs })

function goOn(run: SopRun, nowMs: number): Transition {
  if (run.step < run.steps.length) return arriveAt(run, run.step + 1, nowMs)
  if (hasExecutedStep(run)) return endRun(run, 'completed', { by: ENGINE, reason: null, nowMs })
  return endRun(run, 'failed', { by: ENGINE, reason: 'No step was carried out', nowMs })
}

/** Checkpoints and skipped steps do nothing, so a run of only those has not been carried out. */
function hasExecutedStep({ steps, results }: SopRun): boolean {
  const isExecuted = ({ step, status }: SopStepResult) => status === 'completed' && steps[step - 1]?.kind === 'execute'
  return results.length === steps.length && results.some(isExecuted)
}

interface RunEnd {
  readonly by: string
  readonly reason: string | null
  readonly nowMs: number
}

function endRun(run: SopRun, status: 'completed' | 'failed' | 'cancelled' | 'expired', { by, reason, nowMs }: RunEnd): Transition {
  const shortReason = reason === null ? null : brief(reason)
  const after: SopRun = { ...run, status, gate: null, report: null, endedAtMs: nowMs, reason: shortReason }
  return { run: after, audit: [runRecord(after, `run_${status}`, nowMs, { by, reason: shortReason })] }
}

const attemptDetail = ({ attempt }: SopRun): Readonly<Record<string, unknown>> => {
  if (!attempt) return {}
  return attempt.turnId === null ? { attempt: attempt.number } : { attempt: attempt.number, turn: attempt.turnId }
}
