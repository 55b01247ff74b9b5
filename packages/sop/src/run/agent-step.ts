/**
 * A step that the agent carries out. Each attempt is one turn, whose id the run stores before the agent gets it, so that a crash
 * at any moment neither loses nor doubles the turn.
 */
import { ageMs, untilAborted } from '@sluice/kit'
import { AppError, type SopRun, type SopStep } from '@sluice/sdk'
import { jsonOrText } from '../definition/json-text.ts'
import { outputProblem } from '../definition/output-schema.ts'
import { brief } from './audit-record.ts'
import type { TurnOutcome } from './engine-ports.ts'
import type { SopInput } from './machine.ts'
import { sessionOf, stepCaller, stepTrace } from './run-identity.ts'
import type { StepContext } from './step-execution.ts'
import { STEP_TOOLS, stepPrompt } from './step-prompt.ts'

type AttemptEnded = Extract<SopInput, { type: 'attemptEnded' }>
type Attempt = NonNullable<SopRun['attempt']>

/** The owner of step turns: the caller that may read and abort them. */
export const STEP_OWNER = 'local'

/** Failures that usually pass without any change. */
const TRANSIENT_CODES: ReadonlySet<string> = new Set(['upstream', 'upstream_timeout', 'unavailable', 'rate_limited'])

/** Milliseconds before the second attempt, the third, and so on. */
const ATTEMPT_DELAYS_MS: readonly number[] = [1000, 5000, 20_000, 60_000]
/** The delay before each further attempt, which only a failure that passes has. */
const AWAY_DELAY_MS = 300_000
const HOUR_MS = 3_600_000

const OUTPUT_CHARS_MAX = 16_384

/**
 * Carries out one attempt, or goes on with the one that began before a restart. Throws when the agent or the store is unavailable;
 * the caller then tries again.
 */
export async function carryOutByAgent(context: StepContext): Promise<void> {
  const { ports, runs, run, step, execution } = context
  const turnId = run.attempt?.turnId ?? ports.newId()
  if (!run.attempt) await runs.apply(run.id, { type: 'attemptStarted', step: step.number, turnId })
  execution.turnId = turnId
  try {
    if (execution.signal.aborted) return
    const refusal = (await ports.turns.get(turnId)) ? undefined : await acceptTurn(context, turnId)
    if (refusal !== undefined) {
      await runs.apply(run.id, { type: 'attemptEnded', step: step.number, turnId, status: 'failed', output: refusal })
      return
    }
    await untilAborted(ports.agent.ended(turnId), execution.signal, 'The step was aborted')
  } finally {
    execution.turnId = null
  }
  if (!execution.signal.aborted) await concludeAttempt(context, turnId)
}

/** Gives the turn to the agent. Resolves to the reason of a permanent refusal, or to undefined once the agent has stored the turn. */
async function acceptTurn({ ports: { agent, client }, run, step }: StepContext, turnId: string): Promise<string | undefined> {
  try {
    await agent.accept({
      id: turnId,
      source: 'sop',
      session: sessionOf(run),
      owner: STEP_OWNER,
      caller: stepCaller(run),
      client,
      trace: stepTrace(run, step.number),
      text: stepPrompt(run, step),
      // Nobody waits for the answer of a run that a clock started.
      ...(run.event.source === 'cron' && { maySilent: true }),
      ...(step.tools && { tools: [...new Set([...step.tools, ...STEP_TOOLS])] }),
    })
    return undefined
  } catch (error) {
    if (!(error instanceof AppError) || TRANSIENT_CODES.has(error.code)) throw error
    return error.code === 'conflict' ? undefined : error.message
  }
}

/** Applies the outcome of the turn to the run. Before another attempt it waits. */
async function concludeAttempt({ ports, runs, run: { id }, execution }: StepContext, turnId: string): Promise<void> {
  const [run, turn] = [await runs.read(id), await ports.turns.get(turnId)]
  const { attempt } = run
  if (attempt?.turnId !== turnId) return
  const awayMs = ports.config().max_age_hours * HOUR_MS
  const isPatient = ageMs(ports.clock, attempt.firstStartedAtMs ?? attempt.startedAtMs) < awayMs
  const input = turn && inputFromTurn(run, { ...attempt, turnId }, turn, { newTurnId: ports.newId, isPatient })
  if (!input) throw new AppError('unavailable', `The turn ${turnId} has neither ended nor does it run`)
  await runs.apply(id, input.type === 'attemptEnded' ? await withOutputChecked(run, input) : input)
  if (input.type === 'retry') await ports.clock.sleep(ATTEMPT_DELAYS_MS[attempt.number - 1] ?? AWAY_DELAY_MS, execution.signal)
}

/** Translates the outcome of a turn into an input of the state machine; undefined while the turn has not ended. */
function inputFromTurn(
  run: SopRun,
  attempt: Attempt & { readonly turnId: string },
  turn: TurnOutcome,
  { newTurnId, isPatient }: { newTurnId(): string; readonly isPatient: boolean },
): SopInput | undefined {
  const { turnId } = attempt
  const about = { step: run.step, turnId }
  switch (turn.status) {
    case 'queued':
    case 'running':
      return undefined
    case 'done': {
      const { status, output } = run.report ?? { status: 'completed', output: turn.response ?? '' }
      return { type: 'attemptEnded', ...about, status, output: brief(output, OUTPUT_CHARS_MAX) }
    }
    case 'aborted':
      return { type: 'attemptEnded', ...about, status: 'failed', output: 'Its turn was aborted' }
    case 'failed': {
      const reason = turn.error ? `${turn.error.message} (${turn.error.code})` : 'Its turn failed'
      if (!TRANSIENT_CODES.has(turn.error?.code ?? '') || turn.error?.refusedFor !== undefined)
        return { type: 'attemptEnded', ...about, status: 'failed', output: reason }
      if (mayHaveActed(run.steps[run.step - 1], turn)) return { type: 'interrupted', ...about, reason }
      // An outage of the model, or a limit in dollars that is reached, lasts longer than a few attempts.
      const mayWait = turn.error?.isPassing === true || turn.error?.code === 'rate_limited'
      if (attempt.number > ATTEMPT_DELAYS_MS.length && !(mayWait && isPatient)) {
        return { type: 'attemptEnded', ...about, status: 'failed', output: `${reason}, in each of ${attempt.number} attempts` }
      }
      return { type: 'retry', turnId, nextTurnId: newTurnId(), reason }
    }
  }
}

/** A turn calls no tool before a model has answered. A turn that was started twice may have acted before the restart. */
const mayHaveActed = (step: SopStep | undefined, { model, starts }: TurnOutcome): boolean =>
  step?.tools?.length !== 0 && (model !== null || starts > 1)

async function withOutputChecked(run: SopRun, end: AttemptEnded): Promise<AttemptEnded> {
  if (end.status !== 'completed') return end
  const problem = await outputProblem(run.steps[run.step - 1]?.output, jsonOrText(end.output))
  return problem === undefined ? end : { ...end, status: 'failed', output: `Its output does not fit its schema: ${problem}` }
}
