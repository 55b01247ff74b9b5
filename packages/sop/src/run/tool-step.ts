/**
 * A step in deterministic mode: one tool call without a model. A call with side effects is stored as begun before the tool runs,
 * so that an interrupted one is repeated only after a person agrees. A read-only call is stored when it ends, and simply runs
 * again after a restart.
 */
import { AppError, checkHeld, isLeaseLost, type SopRun, type SopStep } from '@sluice/sdk'
import { jsonOrText } from '../definition/json-text.ts'
import { outputProblem } from '../definition/output-schema.ts'
import type { AttemptEnd } from './machine.ts'
import { resolveInput, valuesFor } from './resolve-input.ts'
import { agentOfRun, STEP_STANDING, stepCaller, stepTrace } from './run-identity.ts'
import { retryDelayMs, type StepContext } from './step-execution.ts'

/** Throws when the agent or the store is unavailable; the caller then tries again. */
export async function carryOutByTool(context: StepContext): Promise<void> {
  const { ports, runs, run, step, execution } = context
  const about = { step: step.number, turnId: null }
  if (run.attempt) {
    // A driver waits for its own call, so this one was begun by a process that has died.
    await runs.apply(run.id, { type: 'interrupted', ...about, reason: 'The call was interrupted after it had begun' })
    return
  }
  const end = await callTool(context)
  // The tool has acted, so its result is stored however long the store takes to recover.
  for (let failures = 0; ; failures++) {
    try {
      await runs.apply(run.id, { type: 'attemptEnded', ...about, ...end })
      return
    } catch (error) {
      const isTransient = error instanceof AppError && error.code === 'unavailable' && !isLeaseLost(error)
      if (!isTransient || execution.signal.aborted) throw error
      ports.log.warn('result of a step not stored yet, retrying', { run: run.id, step: step.number, reason: error.message })
      await ports.clock.sleep(retryDelayMs(failures), execution.signal)
    }
  }
}

async function callTool({ ports, runs, lease, run, step, execution }: StepContext): Promise<AttemptEnd> {
  const { agent, client, clock } = ports
  const startedAtMs = clock.nowMs()
  const failed = (output: string): AttemptEnd => ({ status: 'failed', output, startedAtMs })
  const [tool] = step.tools ?? []
  if (tool === undefined) return failed('The step names no tool')
  const input = inputOf(run, step)
  if ('problem' in input) return failed(input.problem)
  try {
    const report = await agent.call({
      tool,
      input: input.value,
      turn: run.id,
      callId: `call-${step.number}-${run.gates}`,
      source: 'sop',
      agent: agentOfRun(run),
      client,
      caller: stepCaller(run),
      standing: STEP_STANDING,
      trace: stepTrace(run, step.number),
      signal: execution.signal,
      async onBegin(risk) {
        if (execution.signal.aborted) throw new AppError('aborted', 'The step was aborted before its tool ran')
        // Set here and not earlier, so that a call that waits for an approval does not delay a stop. A restart asks again.
        execution.isToolRunning = true
        if (risk !== 'read') await runs.apply(run.id, { type: 'attemptStarted', step: step.number, turnId: null })
        // Asked last, because the lease may be lost during that write. The next owner leaves the begun call to a person.
        if (lease) checkHeld(lease)
      },
    })
    if (report.outcome === 'error' || report.failed) return failed(report.output)
    const value = jsonOrText(report.data ?? report.output)
    const problem = await outputProblem(step.output, value)
    if (problem !== undefined) return failed(`Its output does not fit its schema: ${problem}`)
    return { status: 'completed', output: report.output, value, startedAtMs }
  } finally {
    execution.isToolRunning = false
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
