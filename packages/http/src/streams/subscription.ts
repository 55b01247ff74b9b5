/** The subscription that a request for events asks for: where it resumes, and which types it wants. */

import type { Reader } from '@sluice/runtime'
import { AppError } from '@sluice/sdk'
import * as v from 'valibot'
import { ownerOf } from '../auth/identity.ts'
import { type Caller, type HttpContext, headersOf } from '../request/context.ts'

export interface Subscription {
  /** Decides which events the subscriber is shown. */
  readonly reader: Reader
  /** The last event that the subscriber has seen; null starts with the next event. */
  readonly lastEventId: string | null
  /** The types that the subscriber wants; null means all. */
  readonly types: ReadonlySet<string> | null
}

const TYPES_MAX = 64
const EVENT_ID_LENGTH_MAX = 256

/** Describes the query in the OpenAPI document. */
export const subscriptionQuery = v.object({
  last_event_id: v.optional(v.pipe(v.string(), v.description('The id of the last event seen; later events are sent first'))),
  types: v.optional(v.pipe(v.string(), v.description('Only events of these types, separated by commas'))),
})

/** The reader of events that a caller is. */
export const readerOf = ({ role, device }: Pick<Caller, 'role' | 'device'>): Reader => ({ role: role ?? 'client', owner: ownerOf(device) })

/** Throws `invalid_request` if the id is too long or the types are too many. The `Last-Event-ID` header wins over the query. */
export function parseSubscription(c: HttpContext): Subscription {
  const lastEventId = headersOf(c).get('last-event-id') || c.req.query('last_event_id') || null
  if (lastEventId && lastEventId.length > EVENT_ID_LENGTH_MAX) {
    throw new AppError('invalid_request', 'The last event id is not an id of this daemon')
  }
  const types = (c.req.query('types') ?? '').split(',').filter((type) => type !== '')
  if (types.length > TYPES_MAX) throw new AppError('invalid_request', `types names more than ${TYPES_MAX} types`)
  return { lastEventId, reader: readerOf(c.get('caller')), types: types.length === 0 ? null : new Set(types) }
}
