/** Logs one line for each finished turn and each attempt of a delivery: ids, durations and counts, never the text of a message. */
import type { Logger, Observation, SluiceEvent } from '@sluice/sdk'

/** Logs an event that ends a turn; other events are ignored. */
export function logTurn(log: Logger, event: SluiceEvent): void {
  if (event.type === 'turn_completed') {
    const { turn_id, session_id, source, model, took_ms, input_tokens, output_tokens, finish_reason } = event
    log.info('turn finished', { turn_id, session_id, source, model, took_ms, input_tokens, output_tokens, finish_reason })
  } else if (event.type === 'turn_failed') {
    const { turn_id, session_id, source, code } = event
    log.info('turn failed', { turn_id, session_id, source, code })
  }
}

/** Logs an observation of a delivery; other observations are ignored. */
export function logDelivery(log: Logger, observation: Observation): void {
  if (observation.kind !== 'delivery') return
  const { direction, channel, number, outcome, span } = observation
  log.info('delivery finished', { direction, channel, number, outcome, took_ms: Math.round(span.tookMs), trace_id: span.trace.traceId })
}
