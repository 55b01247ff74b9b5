/** The figures of a crash run. */

import { KILLS_MIN, killsWaited } from './check-gates.ts'
import { countsOf, type Seen } from './history.ts'
import type { LoopsResult } from './run-loops.ts'

export function summary({ history: { messages, seen, delivered }, store, tookMs }: LoopsResult) {
  const of = <Type extends Seen['type']>(type: Type) => seen.filter((event): event is Extract<Seen, { type: Type }> => event.type === type)
  const acked = new Set(of('acked').flatMap(({ marks }) => marks))
  const begun = of('asked').filter(({ afterTool }) => !afterTool)
  const sendings = of('sending')
  const ambiguous = store.outbox.filter(({ state }) => state === 'ambiguous')
  return {
    seconds: Math.round(tookMs / 1000),
    acknowledged: Object.fromEntries(countsOf(messages.filter(({ mark }) => acked.has(mark)).map(({ kind }) => kind))),
    posts: of('posted').length,
    ended: Object.fromEntries(countsOf(of('ended').map(({ by }) => by))),
    turnsBegun: begun.length,
    turnsCut: begun.length - new Set(begun.map(({ mark }) => mark)).size,
    effects: of('effect').length,
    summaries: store.summaries.length,
    questions: Object.fromEntries(countsOf(store.questions.map(({ state }) => state))),
    waitedLong: of('waiting').filter(({ mark }) => killsWaited({ messages, seen }, mark) >= KILLS_MIN).length,
    sends: sendings.length,
    faults: Object.fromEntries(countsOf(sendings.flatMap(({ fault }) => fault ?? []))),
    delivered: delivered.length,
    inbox: Object.fromEntries(countsOf(store.inbox.map(({ state }) => state))),
    outbox: Object.fromEntries(countsOf(store.outbox.map(({ state }) => state))),
    ambiguous: {
      byKill: ambiguous.filter(({ isInterrupted }) => isInterrupted).length,
      byFault: ambiguous.filter(({ isInterrupted }) => !isInterrupted).length,
    },
  }
}
