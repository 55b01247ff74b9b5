/** Checks that each step has its effect as often as people agreed to, with a record, and is completed only with its effect. */
import { countsOf, reporter, type Violation } from '../history.ts'
import { effectName, markOf, type SopsHistory, type SopsView } from './history.ts'
import { isDeterministic, lineCommand, stepsOf } from './procedures.ts'

export function checkSteps({ seen }: SopsHistory, view: SopsView): Violation[] {
  const { found, report } = reporter()
  const effects = [...seen.flatMap((event) => (event.type === 'effect' ? [event] : [])), ...view.lines]
  const counts = countsOf(effects.map(effectName))
  const records = Map.groupBy(view.audit, ({ run }) => run)
  const commands = view.approvals.filter(({ gate, state }) => gate === 'tool' && state === 'approved').map(({ message }) => message)

  for (const run of view.runs) {
    const mark = markOf(run)
    const own = records.get(run.id) ?? []
    for (const [index, kind] of stepsOf(run.sop).entries()) {
      if (kind === 'checkpoint') continue
      const step = index + 1
      const name = effectName({ sop: run.sop, step, mark })
      const times = counts.get(name) ?? 0
      counts.delete(name)
      const agreed = own.filter((row) => row.kind === 'approved' && String(row.detail.gate).startsWith(`step-${step}-again-`)).length
      if (times > 1 + agreed) report('effect once', `${name} had its effect ${times} times, but people agreed to ${agreed} repeats`)
      if (times > 0 && !own.some((row) => row.kind === 'step_started' && row.step === step))
        report('recorded', `${name} had an effect, but the audit log has no start of the step`)
      const isDone = run.results.some((result) => result.step === step && result.status === 'completed')
      if (isDone && times === 0 && isDeterministic(run.sop)) report('carried out', `${name} is completed, but had no effect`)
      const allowed = commands.filter((message) => message.includes(lineCommand(run.sop, step, mark))).length
      if (kind === 'command' && times > allowed)
        report('allowed', `${name} ran ${times} times, but people approved ${allowed} runs of its command`)
    }
  }
  for (const name of counts.keys()) report('lost', `${name} had an effect, but its run is missing`)
  return found
}
