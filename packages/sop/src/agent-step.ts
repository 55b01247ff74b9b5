/** A step that the agent works on: one turn an attempt, named in the run before the agent hears of it, so that no stop loses or doubles it. */
import { AppError, type SopRun, type SopStep } from '@sluice/sdk'
import { outputProblem } from './check-output.ts'
import type { Drive } from './drive.ts'
import { unlessCut } from './drive.ts'
import type { SopEngineDeps } from './engine-deps.ts'
import type { SopInput } from './machine.ts'
import { jsonOrText } from './resolve-input.ts'
import type { RunBooks } from './run-books.ts'
import { stepTrace } from './run-trace.ts'
import { STEP_TOOLS, stepPrompt } from './step-prompt.ts'
import { sessionOf } from './step-session.ts'
import { PASSING, RETRY_WAITS_MS, turnVerdict } from './turn-verdict.ts'

type AttemptEnded = Extract<SopInput, { type: 'attemptEnded' }>

/** Who may read and abort the turns of steps. */
export const STEP_OWNER = 'local'

/** Whose memories and devices the steps of a procedure use: its own, whatever set the run off. */
export const stepCaller = ({ sop }: Pick<SopRun, 'sop'>): string => `sop:${sop}`

/** Brings the step on by one attempt, also one that began before a restart. Throws what may pass: then it is asked again. */
export async function workByAgent(deps: SopEngineDeps, books: RunBooks, run: SopRun, step: SopStep, drive: Drive): Promise<void> {
  const turnId = run.attempt?.turnId ?? deps.newId()
  if (!run.attempt) await books.change(run.id, { type: 'attemptStarted', step: step.number, turnId })
  drive.turnId = turnId
  try {
    if (drive.cut.signal.aborted) return
    const refusal = (await deps.turns.get(turnId)) ? undefined : await accept(deps, run, step, turnId)
    if (refusal !== undefined) {
      await books.change(run.id, { type: 'attemptEnded', step: step.number, turnId, status: 'failed', output: refusal })
      return
    }
    await unlessCut(deps.agent.ended(turnId), drive.cut.signal)
  } finally {
    drive.turnId = null
  }
  if (!drive.cut.signal.aborted) await settle(deps, books, run.id, turnId, drive)
}

/** The sentence with which the agent refuses it for good; undefined once it is kept. */
async function accept({ agent, client }: SopEngineDeps, run: SopRun, step: SopStep, turnId: string): Promise<string | undefined> {
  try {
    await agent.accept({
      id: turnId,
      source: 'sop',
      session: sessionOf(run.id),
      owner: STEP_OWNER,
      caller: stepCaller(run),
      client,
      trace: stepTrace(run, step.number),
      text: stepPrompt(run, step),
      ...(step.tools && { tools: [...new Set([...step.tools, ...STEP_TOOLS])] }),
    })
    return undefined
  } catch (error) {
    if (!(error instanceof AppError) || PASSING.has(error.code)) throw error
    return error.code === 'conflict' ? undefined : error.message
  }
}

async function settle({ turns, newId, clock }: SopEngineDeps, books: RunBooks, runId: string, turnId: string, drive: Drive): Promise<void> {
  const [run, turn] = [await books.read(runId), await turns.get(turnId)]
  const { attempt } = run
  if (attempt?.turnId !== turnId) return
  const input = turn && turnVerdict(run, { ...attempt, turnId }, turn, newId)
  if (!input) throw new AppError('unavailable', `The turn ${turnId} is neither over nor under way`)
  await books.change(runId, input.type === 'attemptEnded' ? await withOutputChecked(run, input) : input)
  if (input.type === 'retry') await clock.sleep(RETRY_WAITS_MS[attempt.number - 1] ?? 0, drive.cut.signal)
}

async function withOutputChecked(run: SopRun, end: AttemptEnded): Promise<AttemptEnded> {
  if (end.status !== 'completed') return end
  const problem = await outputProblem(run.steps[run.step - 1]?.output, jsonOrText(end.output))
  return problem === undefined ? end : { ...end, status: 'failed', output: `Its output does not fit its schema: ${problem}` }
}
