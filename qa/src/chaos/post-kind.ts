/** Messages to `POST /webhook`, with an idempotency key and a session. Half of the requests wait for the reply of their turn. */
import type { Kind } from './kind.ts'
import { textOf } from './marks.ts'

/** The model did not answer. */
const FAILED = [502, 504]

export const postKind = (): Kind => ({
  name: 'post',
  config: '',
  senders: ['session-1', 'session-2', 'session-3', 'session-4'],
  batchMax: 1,
  isPulled: false,
  write: (draft) => ({ ...draft, kind: 'post', id: `key-${draft.mark}`, parts: 0 }),
  request([message]) {
    if (!message) throw new Error('A request of this kind carries one message; got none.')
    const headers = {
      'content-type': 'application/json',
      ...(message.mark.charCodeAt(message.mark.length - 1) % 2 === 0 && { prefer: 'respond-async' }),
      'x-idempotency-key': message.id,
      'x-session-id': message.sender,
    }
    return { path: '/webhook', headers, body: JSON.stringify({ message: textOf(message) }) }
  },
  turnIn({ body, turn: named }) {
    const { turn_id: turn = named, response: text } = JSON.parse(body) as { readonly turn_id?: string; readonly response?: string }
    return turn === null ? undefined : { turn, ...(text !== undefined && { text }) }
  },
  failureIn: ({ status = 0, body }) => (FAILED.includes(status) ? (JSON.parse(body) as { readonly code: string }).code : undefined),
  isInFlight: ({ body }) => (JSON.parse(body) as { readonly state?: string }).state === 'in_flight',
  delivered: () => [],
})
