/** Tells observers of one attempt, from now to its end, below the span its message was kept with. */
import { newTrace } from '@sluice/agent'
import { type Outcome, parseTraceContext, type Trace } from '@sluice/sdk'
import type { DeliveryDeps } from './channels.ts'

export interface DeliveryWatch {
  readonly trace: Trace
  ended(outcome: Outcome): void
}

export function observeDelivery(
  { clock, observe }: Pick<DeliveryDeps, 'clock' | 'observe'>,
  about: { readonly channel: string; readonly direction: 'inbound' | 'outbound'; readonly number: number },
  parent: string | undefined,
): DeliveryWatch {
  const trace = newTrace(parent === undefined ? undefined : parseTraceContext(parent))
  const [startMs, startedAtMs] = [clock.nowMs(), clock.monotonicMs()]
  return {
    trace,
    ended: (outcome) =>
      observe({ kind: 'delivery', ...about, outcome, span: { trace, startMs, tookMs: clock.monotonicMs() - startedAtMs } }),
  }
}
