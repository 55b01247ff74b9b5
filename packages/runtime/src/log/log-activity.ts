/**
 * Logs one line for each finished turn and for each attempt of a delivery: ids, durations and token counts, never the text
 * of a message.
 */
import type { EventEnvelope, Logger, Observation } from '@sluice/sdk'

/** For an event of the daemon. */
export function logTurn(log: Logger, event: EventEnvelope): void {
  if (event.type === 'turn_completed') {
    const { turn_id, session_id, source, model, took_ms, input_tokens, output_tokens } = event
    log.info('Turn completed', { turn_id, session_id, source, model, took_ms, input_tokens, output_tokens })
  } else if (event.type === 'turn_failed') {
    const { turn_id, session_id, source, code } = event
    log.info('Turn failed', { turn_id, session_id, source, code })
  }
}

/** For an observation of the daemon. */
export function logDelivery(log: Logger, observation: Observation): void {
  if (observation.kind !== 'delivery') return
  const { direction, channel, number, outcome, span } = observation
  log.info('Delivery finished', { direction, channel, number, outcome, took_ms: Math.round(span.tookMs), trace_id: span.trace.traceId })
}
