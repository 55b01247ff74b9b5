/** What observers count of events that have no observation of their own. */
import type { EventEnvelope, Observation } from '@sluice/sdk'

export function observationOf(event: EventEnvelope): Observation | undefined {
  switch (event.type) {
    case 'sop_skipped':
      return { kind: 'sop_run', sop: event.sop, outcome: 'skipped' }
    case 'human_approval_resolved':
      return { kind: 'approval', state: event.state }
    default:
      return undefined
  }
}
