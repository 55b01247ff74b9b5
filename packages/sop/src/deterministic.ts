/**
 * A step of deterministic mode: one tool call with no model in it (§4.3). A call with effects is kept as begun before the tool
 * runs; one without leaves no trace until it has ended, and just runs again after a stop.
 */
import { AppError, type SopRun, type SopStep } from '@sluice/sdk'
import { stepCaller } from './agent-step.ts'
import { outputProblem } from './check-output.ts'
import { type Drive, pauseMs } from './drive.ts'
import type { SopEngineDeps } from './engine-deps.ts'
import type { AttemptEnd } from './machine.ts'
import { jsonOrText, resolveInput, valuesFor } from './resolve-input.ts'
import type { RunBooks } from './run-books.ts'
import { stepTrace } from './run-trace.ts'

/** Throws what may pass: then it is asked again. */
export async function workByTool(deps: SopEngineDeps, books: RunBooks, run: SopRun, step: SopStep, drive: Drive): Promise<void> {
  const about = { step: step.number, turnId: null }
  if (run.attempt) {
    // Whoever began it is gone: a drive sees its own call to the end.
    await books.change(run.id, { type: 'cut', ...about, reason: 'It was cut off after it had begun' })
    return
  }
  const end = await carryOut(deps, books, run, step, drive)
  // The call has been made: what came of it is lost if it is not kept now.
  for (let failures = 0; ; failures++) {
    try {
      await books.change(run.id, { type: 'attemptEnded', ...about, ...end })
      return
    } catch (error) {
      const mayPass = error instanceof AppError && error.code === 'unavailable'
      if (!mayPass || drive.cut.signal.aborted) throw error
      deps.log.warn('result of a step not kept yet', { run: run.id, step: step.number, reason: error.message })
      await deps.clock.sleep(pauseMs(failures), drive.cut.signal)
    }
  }
}

async function carryOut(deps: SopEngineDeps, books: RunBooks, run: SopRun, step: SopStep, drive: Drive): Promise<AttemptEnd> {
  const { agent, client, clock } = deps
  const startedAtMs = clock.nowMs()
  const failed = (output: string): AttemptEnd => ({ status: 'failed', output, startedAtMs })
  const [tool] = step.tools ?? []
  if (tool === undefined) return failed('The step names no tool')
  const input = inputOf(run, step)
  if ('problem' in input) return failed(input.problem)
  try {
    const {
      outcome,
      output,
      failed: hasFailed,
      data,
    } = await agent.call({
      tool,
      input: input.value,
      turn: run.id,
      callId: `call-${step.number}-${run.gates}`,
      source: 'sop',
      client,
      caller: stepCaller(run),
      trace: stepTrace(run, step.number),
      signal: drive.cut.signal,
      async onBegin(risk) {
        if (drive.cut.signal.aborted) throw new AppError('aborted', 'The step is not to run any more')
        // Only from here on: who waits for a person is asked again after the next start, and no stop waits for that.
        drive.isCalling = true
        if (risk !== 'read') await books.change(run.id, { type: 'attemptStarted', step: step.number, turnId: null })
      },
    })
    if (outcome === 'error' || hasFailed) return failed(output)
    const value = jsonOrText(data ?? output)
    const problem = await outputProblem(step.output, value)
    return problem === undefined
      ? { status: 'completed', output, value, startedAtMs }
      : { status: 'failed', output: `Its output does not fit its schema: ${problem}`, startedAtMs }
  } finally {
    drive.isCalling = false
  }
}

function inputOf(run: SopRun, step: SopStep): { readonly value: unknown } | { readonly problem: string } {
  try {
    return { value: resolveInput(step.input, valuesFor(run)) }
  } catch (error) {
    if (error instanceof AppError) return { problem: error.message }
    throw error
  }
}
