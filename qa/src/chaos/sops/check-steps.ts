/** No step has its effect more often than people agreed to, none without a record, and none counts as done without it. */
import { countsOf } from '../counts-of.ts'
import type { Violation } from '../history.ts'
import { effectName, markOf, type SopsHistory, type SopsView } from './history.ts'
import { isDeterministic, lineCommand, stepsOf } from './procedures.ts'

export function checkSteps({ seen }: SopsHistory, view: SopsView): Violation[] {
  const found: Violation[] = []
  const tell = (rule: string, detail: string) => void found.push({ rule, detail })
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
      if (times > 1 + agreed) tell('effect once', `${name} had its effect ${times} times, and ${agreed} repeats were agreed to`)
      if (times > 0 && !own.some((row) => row.kind === 'step_started' && row.step === step)) tell('recorded', `${name} is on no record`)
      const isDone = run.results.some((result) => result.step === step && result.status === 'completed')
      if (isDone && times === 0 && isDeterministic(run.sop)) tell('carried out', `${name} is completed and had no effect`)
      const allowed = commands.filter((message) => message.includes(lineCommand(run.sop, step, mark))).length
      if (kind === 'command' && times > allowed) tell('allowed', `${name} ran ${times} times, and people agreed to ${allowed}`)
    }
  }
  for (const name of counts.keys()) tell('lost', `${name} had an effect, and there is no such run`)
  return found
}
