/** Checks that every accepted event got one answer and took effect once for each procedure, and that no announced run is lost. */
import { countsOf, type Report, reporter, type Violation } from '../history.ts'
import { gateName, markOf, type PostedEvent, type Seen, type SopsHistory, type SopsView } from './history.ts'

export function checkEvents({ events, seen }: SopsHistory, view: SopsView): Violation[] {
  const { found, report } = reporter()
  const accepted = new Set<string>()
  /** Runs whose id a caller knows. */
  const announced = new Set<string>()
  for (const event of seen) {
    if (event.type === 'unexpected') report('unexpected', event.detail)
    if (event.type === 'refused') report('accepted', `${event.mark} was refused with status ${event.status}`)
    if (event.type === 'begun') announced.add(event.run)
    if (event.type === 'accepted' || event.type === 'duplicate') accepted.add(event.mark)
    if (event.type === 'accepted') for (const result of event.results) if (result.status !== 'skipped') announced.add(result.runId)
    if (event.type === 'inspected') {
      const kept = new Set(event.runs)
      for (const run of announced) if (!kept.has(run)) report('durable', `the announced run ${run} is not stored after a kill`)
      for (const problem of event.problems) report('file', problem)
    }
  }
  checkAnswers(events, seen, view, report)
  const ids = new Set(view.runs.map(({ id }) => id))
  for (const run of announced) if (!ids.has(run)) report('lost', `the announced run ${run} is missing at the end`)
  for (const [name, times] of countsOf(view.runs.map((run) => gateName(run.sop, markOf(run)))))
    if (times > 1) report('started once', `${name} has ${times} runs`)
  checkDispatched(events, accepted, view, report)
  return found
}

/** Checks what the daemon answered to each event. */
function checkAnswers(events: readonly PostedEvent[], seen: readonly Seen[], { runs }: SopsView, report: Report): void {
  const byMark = new Map(events.map((event) => [event.mark, event]))
  const byId = new Map(runs.map((run) => [run.id, run]))
  const answered = new Set<string>()
  for (const event of seen) {
    if (event.type !== 'accepted') continue
    const { mark, results } = event
    if (answered.has(mark)) report('answered once', `${mark} was accepted twice`)
    answered.add(mark)
    const expected = (byMark.get(mark)?.sops ?? []).toSorted().join()
    const dispatched = results
      .map(({ sop }) => sop)
      .toSorted()
      .join()
    if (dispatched !== expected)
      report('answered', `${mark} was dispatched to ${dispatched || 'nothing'} instead of ${expected || 'nothing'}`)
    for (const result of results) {
      const run = result.status === 'skipped' ? undefined : byId.get(result.runId)
      if (run && (run.sop !== result.sop || markOf(run) !== mark)) report('answered', `the run ${run.id} does not belong to ${mark}`)
    }
  }
}

/** Each accepted event started a procedure that matches it, at once or after a wait; no procedure here skips one. */
function checkDispatched(events: readonly PostedEvent[], accepted: ReadonlySet<string>, { runs, audit }: SopsView, report: Report): void {
  const due = countsOf(events.filter(({ mark }) => accepted.has(mark)).flatMap(({ path, sops }) => sops.map((sop) => `${sop} by ${path}`)))
  const started = runs.filter(({ event }) => event.source === 'webhook').map(({ sop, event }) => `${sop} by ${event.topic}`)
  const skipped = audit.flatMap(({ kind, sop, detail }) =>
    kind === 'trigger_skipped' && detail.source === 'webhook' ? [`${sop} by ${detail.topic}`] : [],
  )
  const done = countsOf(started)
  for (const name of new Set([...due.keys(), ...done.keys()])) {
    const [wanted, were] = [due.get(name) ?? 0, done.get(name) ?? 0]
    if (wanted !== were) report('dispatched', `${name}: ${wanted} events, but ${were} runs`)
  }
  for (const name of skipped) report('skipped', `${name}: an event was skipped, although its run could wait`)
}
