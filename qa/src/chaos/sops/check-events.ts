/** Every event that was taken has one answer and did one thing for each procedure; no run that anybody was told of is lost. */
import { countsOf } from '../counts-of.ts'
import type { Violation } from '../history.ts'
import { gateName, markOf, type SopsHistory, type SopsView } from './history.ts'

export function checkEvents({ events, seen }: SopsHistory, { runs, audit }: SopsView): Violation[] {
  const found: Violation[] = []
  const tell = (rule: string, detail: string) => void found.push({ rule, detail })
  const byMark = new Map(events.map((event) => [event.mark, event]))
  const byId = new Map(runs.map((run) => [run.id, run]))
  const answered = new Set<string>()
  const taken = new Set<string>()
  const told = new Set<string>()

  for (const event of seen) {
    if (event.type === 'nonsense') tell('sense', event.detail)
    if (event.type === 'refused') tell('taken', `${event.mark} was answered ${event.status}`)
    if (event.type === 'begun') told.add(event.run)
    if (event.type === 'accepted' || event.type === 'duplicate') taken.add(event.mark)
    if (event.type === 'accepted') {
      if (answered.has(event.mark)) tell('answered once', `${event.mark} was accepted twice`)
      answered.add(event.mark)
      const expected = byMark.get(event.mark)?.sops ?? []
      const named = event.results.map(({ sop }) => sop)
      if (named.toSorted().join() !== expected.toSorted().join()) tell('answered', `${event.mark} set off ${named.join() || 'nothing'}`)
      for (const result of event.results) {
        if (result.status !== 'started') continue
        told.add(result.runId)
        const run = byId.get(result.runId)
        if (run && (run.sop !== result.sop || markOf(run) !== event.mark)) tell('answered', `${result.runId} is no run of ${event.mark}`)
      }
    }
    if (event.type === 'inspected') {
      const kept = new Set(event.runs)
      for (const run of told) if (!kept.has(run)) tell('durable', `the run ${run} was told of and is not kept`)
      for (const problem of event.problems) tell('file', problem)
    }
  }
  for (const run of told) if (!byId.has(run)) tell('lost', `the run ${run} was told of and is gone`)
  for (const [name, times] of countsOf(runs.map((run) => gateName(run.sop, markOf(run))))) {
    if (times > 1) tell('started once', `${name} has ${times} runs`)
  }
  return [...found, ...checkDone({ events, seen }, taken, { runs, audit })]
}

/** Each event either started a procedure that it fits, or is recorded as held back. */
function checkDone({ events }: Pick<SopsHistory, 'events' | 'seen'>, taken: ReadonlySet<string>, view: Pick<SopsView, 'runs' | 'audit'>) {
  const due = countsOf(events.filter(({ mark }) => taken.has(mark)).flatMap(({ path, sops }) => sops.map((sop) => `${sop} by ${path}`)))
  const started = view.runs.filter(({ event }) => event.source === 'webhook').map(({ sop, event }) => `${sop} by ${event.topic}`)
  const skipped = view.audit.flatMap(({ kind, sop, detail }) =>
    kind === 'trigger_skipped' && detail.source === 'webhook' ? [`${sop} by ${detail.topic}`] : [],
  )
  const done = countsOf([...started, ...skipped])
  const names = new Set([...due.keys(), ...done.keys()])
  return [...names].flatMap((name): Violation[] => {
    const [wanted, were] = [due.get(name) ?? 0, done.get(name) ?? 0]
    return wanted === were ? [] : [{ rule: 'dispatched', detail: `${name}: ${wanted} events, ${were} runs and refusals` }]
  })
}
