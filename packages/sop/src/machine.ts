/**
 * What can happen to a run, and what becomes of it (§4.3): the only place where a run changes. Pure, so that the same run and
 * input always give the same answer; what is not allowed is refused and changes nothing.
 */
import type { SopRun, SopRunStatus, SopStepResult } from '@sluice/sdk'
import { arriveAt, type Moved, openGate } from './gates.ts'
import { brief, ENGINE, runRecord, stepRecord } from './record.ts'

/** `gate`, `step` and `turnId` say what the input is about: one that is about something past is refused. */
export type SopInput =
  | { readonly type: 'approve' | 'reject'; readonly gate: string; readonly by: string; readonly feedback: string | null }
  | { readonly type: 'expire'; readonly gate: string }
  /** Kept before the turn is asked for (`turnId`), or before a tool with effects runs (null). */
  | { readonly type: 'attemptStarted'; readonly step: number; readonly turnId: string | null }
  /** The agent's word on its step; counts once the turn is done. */
  | { readonly type: 'report'; readonly turnId: string; readonly status: SopStepResult['status']; readonly output: string }
  | ({ readonly type: 'attemptEnded'; readonly step: number; readonly turnId: string | null } & AttemptEnd)
  /** The turn failed before it could do anything; the next attempt is `nextTurnId`. */
  | { readonly type: 'retry'; readonly turnId: string; readonly nextTurnId: string; readonly reason: string }
  /** What began may have had its effect, and nobody knows: a person decides whether it runs again. */
  | { readonly type: 'cut'; readonly step: number; readonly turnId: string | null; readonly reason: string }
  /** With `gate`: only while the run waits there. */
  | { readonly type: 'cancel'; readonly gate?: string; readonly by: string; readonly reason: string }

export interface AttemptEnd {
  readonly status: SopStepResult['status']
  readonly output: string
  readonly value?: unknown
  /** Of a call without effects, which is not kept when it begins. */
  readonly startedAtMs?: number
}

const WAITING = ['approve', 'reject', 'expire', 'cancel'] as const

/** What each status takes; everything else is refused. */
export const ALLOWED: Readonly<Record<SopRunStatus, readonly SopInput['type'][]>> = {
  running: ['attemptStarted', 'report', 'attemptEnded', 'retry', 'cut', 'cancel'],
  waiting_approval: WAITING,
  paused_checkpoint: WAITING,
  completed: [],
  failed: [],
  cancelled: [],
}

const TITLES: Readonly<Record<SopInput['type'], string>> = {
  approve: 'be approved',
  reject: 'be rejected',
  expire: 'expire',
  attemptStarted: 'begin its step',
  report: 'take a report',
  attemptEnded: 'end its step',
  retry: 'repeat its step',
  cut: 'be cut',
  cancel: 'be cancelled',
}

const stale = (run: SopRun, why: string): { readonly refused: string } => ({ refused: `The run ${run.id} has moved on: ${why}` })

/** The run after `input`, or the sentence that says why it cannot be. */
export function transition(run: SopRun, input: SopInput, nowMs: number): Moved | { readonly refused: string } {
  if (!ALLOWED[run.status].includes(input.type)) {
    return { refused: `The run ${run.id} cannot ${TITLES[input.type]}: it is ${run.status}` }
  }
  switch (input.type) {
    case 'approve':
    case 'reject':
    case 'expire':
      return run.gate?.stepId === input.gate ? decided(run, input, nowMs) : stale(run, `it does not wait at ${input.gate}`)
    case 'cancel':
      if (input.gate !== undefined && run.gate?.stepId !== input.gate) return stale(run, `it does not wait at ${input.gate}`)
      return ended(run, 'cancelled', { by: input.by, reason: input.reason, nowMs })
    case 'attemptStarted':
      if (run.step !== input.step) return stale(run, `it is at step ${run.step}`)
      if (run.attempt) return stale(run, 'its step is under way')
      return attempted(run, { turnId: input.turnId, number: 1, startedAtMs: nowMs }, null)
    case 'report':
      return run.attempt?.turnId === input.turnId ? reported(run, input, nowMs) : stale(run, 'its step is not worked on by this turn')
    case 'retry':
      if (run.attempt?.turnId !== input.turnId) return stale(run, 'another turn works on its step')
      return attempted(run, { turnId: input.nextTurnId, number: run.attempt.number + 1, startedAtMs: nowMs }, input.reason)
    case 'cut': {
      if (run.step !== input.step || run.attempt?.turnId !== input.turnId) return stale(run, 'another attempt is under way')
      const { run: waiting, audit } = openGate(run, 'again', nowMs)
      return { run: waiting, audit: [stepRecord(run, 'step_cut', nowMs, { reason: input.reason, detail: detailOf(run) }), ...audit] }
    }
    case 'attemptEnded':
      if (run.step !== input.step || (run.attempt?.turnId ?? null) !== input.turnId) return stale(run, 'another attempt is under way')
      return attemptEnded(run, input, nowMs)
  }
}

type Decided = Extract<SopInput, { type: 'approve' | 'reject' | 'expire' }>

function decided(run: SopRun, input: Decided, nowMs: number): Moved {
  const detail = { gate: input.gate }
  if (input.type === 'expire') {
    const reason = 'Nobody answered in time'
    const { run: after, audit } = ended(run, 'cancelled', { by: ENGINE, reason: `${reason}: step ${run.step} was not approved`, nowMs })
    return { run: after, audit: [stepRecord(run, 'expired', nowMs, { by: 'timeout', reason, detail }), ...audit] }
  }
  const { by, feedback } = input
  const record = stepRecord(run, input.type === 'approve' ? 'approved' : 'rejected', nowMs, { by, reason: feedback, detail })
  if (input.type === 'reject') {
    const { run: after, audit } = ended(run, 'cancelled', { by, reason: `Rejected by ${by}${feedback ? `: ${feedback}` : ''}`, nowMs })
    return { run: after, audit: [record, ...audit] }
  }
  if (run.status === 'paused_checkpoint') {
    const output = `Approved by ${by}${feedback ? `: ${feedback}` : ''}`
    const { run: after, audit } = stepEnded(run, { status: 'completed', output, startedAtMs: run.gate?.sinceMs ?? nowMs }, nowMs)
    return { run: after, audit: [record, ...audit] }
  }
  return { run: { ...run, status: 'running', gate: null }, audit: [record] }
}

function attempted(run: SopRun, attempt: NonNullable<SopRun['attempt']>, reason: string | null): Moved {
  const after: SopRun = { ...run, attempt, report: null }
  return { run: after, audit: [stepRecord(after, 'step_started', attempt.startedAtMs, { reason, detail: detailOf(after) })] }
}

function reported(run: SopRun, { turnId, status, output }: Extract<SopInput, { type: 'report' }>, nowMs: number): Moved {
  const record = stepRecord(run, 'reported', nowMs, { by: `turn:${turnId}`, reason: output, detail: { status } })
  return { run: { ...run, report: { status, output } }, audit: [record] }
}

function attemptEnded(run: SopRun, end: AttemptEnd, nowMs: number): Moved {
  const startedAtMs = run.attempt?.startedAtMs ?? end.startedAtMs ?? nowMs
  const { run: after, audit } = stepEnded(run, { ...end, startedAtMs }, nowMs)
  return run.attempt ? { run: after, audit } : { run: after, audit: [stepRecord(run, 'step_started', startedAtMs), ...audit] }
}

/** The step has its result: on to the next one, or to the end of the run. */
function stepEnded(run: SopRun, end: AttemptEnd & { readonly startedAtMs: number }, nowMs: number): Moved {
  const { status, output, value, startedAtMs } = end
  const result: SopStepResult = { step: run.step, status, output, ...(value !== undefined && { value }), startedAtMs, endedAtMs: nowMs }
  const record = stepRecord(run, `step_${status}`, nowMs, { reason: output, detail: detailOf(run) })
  const after: SopRun = { ...run, gate: null, attempt: null, report: null, results: [...run.results, result] }
  const next = status === 'failed' ? failed(after, output, nowMs) : goneOn(after, nowMs)
  return { run: next.run, audit: [record, ...next.audit] }
}

const failed = (run: SopRun, output: string, nowMs: number): Moved =>
  ended(run, 'failed', { by: ENGINE, reason: `Step ${run.step} failed: ${output}`, nowMs })

function goneOn(run: SopRun, nowMs: number): Moved {
  if (run.step < run.steps.length) return arriveAt(run, run.step + 1, nowMs)
  if (wasCarriedOut(run)) return ended(run, 'completed', { by: ENGINE, reason: null, nowMs })
  return ended(run, 'failed', { by: ENGINE, reason: 'No step was carried out', nowMs })
}

/** A checkpoint is a pause and a skipped step is none: a run of nothing else has done nothing. */
function wasCarriedOut({ steps, results }: SopRun): boolean {
  const isExecuted = ({ step, status }: SopStepResult) => status === 'completed' && steps[step - 1]?.kind === 'execute'
  return results.length === steps.length && results.some(isExecuted)
}

function ended(
  run: SopRun,
  status: 'completed' | 'failed' | 'cancelled',
  { by, reason, nowMs }: { readonly by: string; readonly reason: string | null; readonly nowMs: number },
): Moved {
  const sentence = reason === null ? null : brief(reason)
  const after: SopRun = { ...run, status, gate: null, report: null, endedAtMs: nowMs, reason: sentence }
  return { run: after, audit: [runRecord(after, `run_${status}`, nowMs, { by, reason: sentence })] }
}

const detailOf = ({ attempt }: SopRun): Readonly<Record<string, unknown>> => {
  if (!attempt) return {}
  return attempt.turnId === null ? { attempt: attempt.number } : { attempt: attempt.number, turn: attempt.turnId }
}
