/** The figures of a crash run of procedures. */
import { countsOf } from '../history.ts'
import { followedLives } from './check-subscriber.ts'
import type { Seen } from './history.ts'
import type { SopLoopsResult } from './run-sop-loops.ts'

export function sopsSummary({ history: { events, seen }, view, tookMs }: SopLoopsResult) {
  const of = <Type extends Seen['type']>(type: Type) => seen.filter((event): event is Extract<Seen, { type: Type }> => event.type === type)
  const counts = <Item>(items: readonly Item[]) => Object.fromEntries(countsOf(items))
  const deciderOf = (by: string | null) => by?.replace(/^(device|cli):.*/, '$1') ?? 'nobody'
  const { runs, audit, approvals, outbox, lines } = view
  return {
    seconds: Math.round(tookMs / 1000),
    events: events.length,
    repeatsAnswered: of('duplicate').length,
    ended: counts(of('ended').map(({ by }) => by)),
    runs: counts(runs.map(({ status }) => status)),
    bySop: counts(runs.map(({ sop }) => sop)),
    records: counts(audit.map(({ kind }) => kind)),
    effects: of('effect').length + lines.length,
    repeatsAgreed: audit.filter(({ kind, detail }) => kind === 'approved' && String(detail.gate).includes('-again-')).length,
    approvals: counts(approvals.map(({ gate, state }) => `${gate} ${state}`)),
    decidedBy: counts(approvals.map(({ by }) => deciderOf(by))),
    attempts: of('deciding').length,
    late: of('lost').length,
    told: followedLives(seen).reduce((sum, { decisions }) => sum + decisions.length, 0),
    messages: counts(outbox.map(({ state }) => state)),
  }
}
