/** Tells observers what became of a request or a message that came in, with its span where somebody traces. */
import { newTrace } from '@sluice/agent'
import { type Clock, formatTraceContext, type Observation, type Trace } from '@sluice/sdk'

type Ingress = Extract<Observation, { readonly kind: 'ingress' }>

export interface IngressWatchDeps {
  readonly clock: Clock
  readonly traces: boolean
  observe(observation: Observation): void
}

export interface IngressWatch {
  /** What is kept with its messages. */
  readonly trace?: string
  ended(verdict: Ingress['verdict']): void
}

/** From now to its end. `parent`: the request that brings it. */
export function watchIngress(
  { clock, traces, observe }: IngressWatchDeps,
  about: Pick<Ingress, 'channel' | 'signed'>,
  parent?: Trace,
): IngressWatch {
  if (!traces) return { ended: (verdict) => observe({ kind: 'ingress', ...about, verdict }) }
  const trace = newTrace(parent)
  const [startMs, startedAtMs] = [clock.nowMs(), clock.monotonicMs()]
  return {
    trace: formatTraceContext(trace),
    ended: (verdict) =>
      observe({ kind: 'ingress', ...about, verdict, span: { trace, startMs, tookMs: clock.monotonicMs() - startedAtMs } }),
  }
}
