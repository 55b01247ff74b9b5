/** An event as a person writes it down for `simulate`. */
import { AppError } from '@sluice/sdk'
import * as v from 'valibot'
import type { SimulatedEvent } from './simulate.ts'

const schema = v.strictObject({
  source: v.picklist(['manual', 'webhook', 'cron', 'mqtt', 'peripheral']),
  topic: v.pipe(v.string(), v.minLength(1)),
  payload: v.optional(v.unknown(), null),
})

const FORM = 'an event looks like {"source": "webhook", "topic": "/deploy", "payload": {"any": "JSON"}}'

/** A payload that is no text stands for its JSON. Throws `invalid_request` for what is no event. */
export function readEvent(json: unknown): SimulatedEvent {
  const { success, output, issues } = v.safeParse(schema, json)
  if (!success) {
    const [issue] = issues
    const where = v.getDotPath(issue)
    throw new AppError('invalid_request', `${where === null ? 'This is no event' : `\`${where}\` is not right`}: ${FORM}`)
  }
  const { source, topic, payload } = output
  return { source, topic, payload: payload === null || typeof payload === 'string' ? payload : JSON.stringify(payload) }
}
