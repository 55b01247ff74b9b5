/** What a subscriber asks for in its request: where to resume, and which types. */

import type { Reader } from '@sluice/runtime'
import { AppError } from '@sluice/sdk'
import * as v from 'valibot'
import type { Caller, HttpContext } from '../gate.ts'
import { ownerOf } from '../session-name.ts'
import type { Subscription } from './fan-out.ts'

const TYPES_MAX = 64
const EVENT_ID_LENGTH_MAX = 256

/** For the OpenAPI document. */
export const subscriptionQuery = v.object({
  last_event_id: v.optional(v.pipe(v.string(), v.description('The id of the last event seen; what came after it is sent first'))),
  types: v.optional(v.pipe(v.string(), v.description('Only events of these types, separated by commas'))),
})

/** Whose events a caller is shown. */
export const readerOf = ({ role, device }: Pick<Caller, 'role' | 'device'>): Reader => ({ role: role ?? 'client', owner: ownerOf(device) })

/** Throws `invalid_request` for more than can be meant. The `Last-Event-ID` header wins over the query. */
export function parseSubscription(c: HttpContext, caller: Caller): Subscription {
  const lastEventId = c.req.header('last-event-id') || c.req.query('last_event_id') || null
  if (lastEventId && lastEventId.length > EVENT_ID_LENGTH_MAX) throw new AppError('invalid_request', 'The last event id is no id of ours')
  const types = (c.req.query('types') ?? '').split(',').filter((type) => type !== '')
  if (types.length > TYPES_MAX) throw new AppError('invalid_request', `types names more than ${TYPES_MAX} types`)
  return { lastEventId, reader: readerOf(caller), types: types.length === 0 ? null : new Set(types) }
}
